"""The public API of clocs: what a plugin or a notebook needs. Importing it imports no torch."""

from clocs_core.data.batches import Batch, Views
from clocs_core.data.records import Drop, DropReport, Entry, Episode, Framing, Label, Listing, Part, Record, Task
from clocs_core.data.wfdb import Header, Signal, WfdbRecord, read_header, read_wfdb
from clocs_core.errors import (
    AmbiguousName,
    ClocsError,
    DataError,
    DataNotFound,
    DownloadError,
    NonFiniteLoss,
    PluginError,
    RunFolderError,
    SettingsError,
    UnknownName,
)
from clocs_core.extend.events import EmbeddingMap, EpochDone, Health, Picture, RunDone, RunStarted
from clocs_core.extend.hookspecs import hookimpl
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
    Source,
    ViewGenerator,
)
from clocs_core.options import option
from clocs_core.scores import Comparison, Score

__version__ = "0.1.0"

__all__ = [
    "AmbiguousName",
    "Batch",
    "ClocsError",
    "Comparison",
    "DataError",
    "DataNotFound",
    "Dataset",
    "Defaults",
    "DownloadError",
    "Drop",
    "DropReport",
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
    "Part",
    "Perturbation",
    "Picture",
    "PluginError",
    "Record",
    "RunDone",
    "RunFolderError",
    "RunStarted",
    "Score",
    "SettingsError",
    "Signal",
    "Source",
    "Task",
    "UnknownName",
    "ViewGenerator",
    "Views",
    "WfdbRecord",
    "__version__",
    "hookimpl",
    "option",
    "read_header",
    "read_wfdb",
]
