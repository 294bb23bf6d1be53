"""The exceptions of clocs. Each is also the builtin exception that a caller would expect.

ClocsError
├── UnknownName (LookupError)          a name that nothing installed offers
├── AmbiguousName (LookupError)        a name that two plugins offer
├── PluginError (ImportError)          a plugin that cannot be loaded, or breaks its promises
├── SettingsError (ValueError)         an invalid option, flag or configuration file
│   └── Unavailable (NotImplementedError)  a way to compute that this machine does not have
├── DataError (ValueError)             recordings that do not fit the request
│   └── DataNotFound (FileNotFoundError)
├── DownloadError (OSError)            a file that could not be downloaded whole
├── RunFolderError (OSError)           a run folder that cannot be used
├── LostProcess (ConnectionError)      one of several processes that train together ended
├── NonFiniteLoss (ArithmeticError)    training met a NaN or an infinity
└── OutOfMemory (MemoryError)          a batch that does not fit on the GPU

ClocsWarning (UserWarning)             something to know about a run that continues

Every message says what was asked, what was found and what to do.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class ClocsError(Exception):
    """An error that the user can correct; the command line prints it in one line and exits with 2."""

    def __str__(self) -> str:
        # LookupError and OSError format their arguments differently; print the message as it is.
        return str(self.args[0]) if self.args else type(self).__name__


class UnknownName(ClocsError, LookupError):
    """A name that nothing installed offers."""


class AmbiguousName(ClocsError, LookupError):
    """A name that more than one plugin offers."""


class PluginError(ClocsError, ImportError):
    """A plugin that cannot be loaded, or that does not keep a promise of its offer."""


class SettingsError(ClocsError, ValueError):
    """An invalid option, flag or configuration file."""


class Unavailable(SettingsError, NotImplementedError):
    """A requested way to compute that this machine does not have.

    It is a NotImplementedError too: callers of torch know that one for an operation that a device lacks.
    """


class DataError(ClocsError, ValueError):
    """Recordings that do not fit the request."""


class DataNotFound(DataError, FileNotFoundError):
    """A data set that is not on this machine."""


class DownloadError(ClocsError, OSError):
    """A file that could not be downloaded whole."""


class RunFolderError(ClocsError, OSError):
    """A run folder that cannot be written, resumed or read."""


class LostProcess(ClocsError, ConnectionError):
    """One of several processes that train together ended, or cannot be reached."""


class NonFiniteLoss(ClocsError, ArithmeticError):
    """A training loss that is NaN or infinite."""


class OutOfMemory(ClocsError, MemoryError):
    """A batch that does not fit on the GPU."""


class ClocsWarning(UserWarning):
    """Something to know about a run that continues: for `warnings.warn` in a plugin. The report repeats it."""


def neighbours(asked: str, known: Iterable[str]) -> str:
    """Suggest the nearest known names (" Did you mean 'x'?"), or list all of them; return "" where there are none."""
    names = sorted(set(known))
    # A very similar name is suggested alone: `epochs` for `epoch`, and not `notch` as well.
    close = get_close_matches(asked, names, n=1, cutoff=0.9) or get_close_matches(asked, names, n=2, cutoff=0.6)
    close = close or [name for name in names if len(asked) > 2 and name.startswith(asked)][:2]
    if close:
        return " Did you mean " + " or ".join(repr(name) for name in close) + "?"
    return f" There is: {', '.join(names)}." if names else ""
