"""The exceptions a user can meet. Each is also the builtin that a caller would expect.

ClocsError
├── UnknownName (LookupError)          a name that nothing installed offers
├── AmbiguousName (LookupError)        a name that two plugins offer
├── PluginError (ImportError)          a plugin that cannot be loaded, or breaks its promises
├── SettingsError (ValueError)         an option, flag or configuration file that makes no sense
│   └── Unavailable (NotImplementedError)  a way to compute that this machine does not have
├── DataError (ValueError)             recordings that cannot serve what was asked
│   └── DataNotFound (FileNotFoundError)
├── DownloadError (OSError)            a file that could not be downloaded whole
├── RunFolderError (OSError)           a run folder that cannot be used
├── NonFiniteLoss (ArithmeticError)    training met a NaN or an infinity
└── OutOfMemory (MemoryError)          a batch that does not fit on the GPU

ClocsWarning (UserWarning)             what a user should know of a run that goes on

Every message says what was asked, what was found and what to do.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class ClocsError(Exception):
    """Something the user can put right; the command line prints it in one line and exits with 2."""

    def __str__(self) -> str:
        # LookupError and OSError format their arguments in their own ways; here a message is a message.
        return str(self.args[0]) if self.args else type(self).__name__


class UnknownName(ClocsError, LookupError):
    """A name that nothing installed offers."""


class AmbiguousName(ClocsError, LookupError):
    """A name that more than one plugin offers."""


class PluginError(ClocsError, ImportError):
    """A plugin that cannot be loaded, or that does not keep a promise of its offer."""


class SettingsError(ClocsError, ValueError):
    """An option, a flag or a configuration file that makes no sense."""


class Unavailable(SettingsError, NotImplementedError):
    """A way to compute something that was asked for by name, and that this machine does not have."""


class DataError(ClocsError, ValueError):
    """Recordings that cannot serve what was asked of them."""


class DataNotFound(DataError, FileNotFoundError):
    """A data set that is not on this machine."""


class DownloadError(ClocsError, OSError):
    """A file that could not be downloaded whole."""


class RunFolderError(ClocsError, OSError):
    """A run folder that cannot be written, resumed or read."""


class NonFiniteLoss(ClocsError, ArithmeticError):
    """Training met a loss that is not a number."""


class OutOfMemory(ClocsError, MemoryError):
    """A batch that does not fit on the GPU."""


class ClocsWarning(UserWarning):
    """Something a user should know of a run that goes on: for `warnings.warn` in a plugin. The report says it too."""


def neighbours(asked: str, known: Iterable[str]) -> str:
    """The half-sentence that offers the nearest known names: " Did you mean 'x'?", or all of them, or nothing."""
    names = sorted(set(known))
    close = get_close_matches(asked, names, n=2, cutoff=0.6)
    close = close or [name for name in names if len(asked) > 2 and name.startswith(asked)][:2]
    if close:
        return " Did you mean " + " or ".join(repr(name) for name in close) + "?"
    return f" There is: {', '.join(names)}." if names else ""
