"""The public API of clocs: what a notebook needs, and what a plugin needs. `docs/stability.md` says what is promised.

`__init__.pyi` lists the names. Each is imported when it is first used, so that `import clocs_core` imports no torch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

__version__ = "0.1.0"
"""The version of clocs that is installed."""
