"""The public API of clocs: what a plugin or a notebook needs. Importing it imports no torch."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from clocs_core.data.batches import Batch, Views
from clocs_core.data.records import Drop, DropReport, Entry, Episode, Framing, Label, Listing, Part, Record, Task
from clocs_core.data.wfdb import Header, Signal, WfdbRecord, read_header, read_wfdb
from clocs_core.errors import (
    AmbiguousName,
    ClocsError,
    ClocsWarning,
    DataError,
    DataNotFound,
    DownloadError,
    NonFiniteLoss,
    OutOfMemory,
    PluginError,
    RunFolderError,
    SettingsError,
    Unavailable,
    UnknownName,
)
from clocs_core.extend.events import EmbeddingMap, EpochDone, Health, Picture, RunDone, RunStarted
from clocs_core.extend.hookspecs import API_VERSION, hookimpl
from clocs_core.extend.offers import (
    Dataset,
    Defaults,
    Encoder,
    Loss,
    Method,
    Metric,
    Needs,
    NoOptions,
    Objective,
    Perturbation,
    Presets,
    Setup,
    Source,
    Variant,
    ViewGenerator,
)
from clocs_core.kernels import can_run_triton, missing_for_triton
from clocs_core.options import option
from clocs_core.scores import Comparison, Score
from clocs_core.train.label_loss import label_loss

if TYPE_CHECKING:
    from clocs_core.embedder import Embedded, Embedder, load

__version__ = "0.1.0"

__all__ = [
    "API_VERSION",
    "AmbiguousName",
    "Batch",
    "ClocsError",
    "ClocsWarning",
    "Comparison",
    "DataError",
    "DataNotFound",
    "Dataset",
    "Defaults",
    "DownloadError",
    "Drop",
    "DropReport",
    "Embedded",
    "Embedder",
    "EmbeddingMap",
    "Encoder",
    "Entry",
    "Episode",
    "EpochDone",
    "Framing",
    "Header",
    "Health",
    "Label",
    "Listing",
    "Loss",
    "Method",
    "Metric",
    "Needs",
    "NoOptions",
    "NonFiniteLoss",
    "Objective",
    "OutOfMemory",
    "Part",
    "Perturbation",
    "Picture",
    "PluginError",
    "Presets",
    "Record",
    "RunDone",
    "RunFolderError",
    "RunStarted",
    "Score",
    "SettingsError",
    "Setup",
    "Signal",
    "Source",
    "Task",
    "Unavailable",
    "UnknownName",
    "Variant",
    "ViewGenerator",
    "Views",
    "WfdbRecord",
    "__version__",
    "can_run_triton",
    "hookimpl",
    "label_loss",
    "load",
    "missing_for_triton",
    "option",
    "read_header",
    "read_wfdb",
]

_LATE = {"Embedded", "Embedder", "load"}  # of clocs_core.embedder, which imports torch


def __getattr__(name: str) -> Any:
    """What needs torch, at the moment that somebody asks for it."""
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.embedder"), name)
