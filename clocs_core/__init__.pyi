"""The public names of clocs. `__init__.py` imports each of them when it is first used."""

from .api.classifier import (
    Classifier as Classifier,
)
from .api.classifier import (
    Prediction as Prediction,
)
from .api.classifier import (
    load_classifier as load_classifier,
)
from .api.comparing import (
    ComparisonResults as ComparisonResults,
)
from .api.comparing import (
    compare as compare,
)
from .api.encoder import (
    Embedded as Embedded,
)
from .api.encoder import (
    Embedder as Embedder,
)
from .api.encoder import (
    load as load,
)
from .api.evaluations import (
    EvaluationResults as EvaluationResults,
)
from .api.evaluations import (
    evaluate as evaluate,
)
from .api.listing import (
    datasets as datasets,
)
from .api.listing import (
    methods as methods,
)
from .api.recordings import (
    Recordings as Recordings,
)
from .api.recordings import (
    dataset as dataset,
)
from .api.results import (
    Results as Results,
)
from .api.runs import (
    Run as Run,
)
from .api.runs import (
    load_run as load_run,
)
from .api.runs import (
    pretrain as pretrain,
)
from .api.several_seeds import (
    SeedRuns as SeedRuns,
)
from .api.several_seeds import (
    pretrain_seeds as pretrain_seeds,
)
from .api.tables import (
    Table as Table,
)
from .contracts.batches import (
    Batch as Batch,
)
from .contracts.batches import (
    Encode as Encode,
)
from .contracts.batches import (
    Views as Views,
)
from .contracts.events import (
    EmbeddingMap as EmbeddingMap,
)
from .contracts.events import (
    EpochDone as EpochDone,
)
from .contracts.events import (
    EvaluationDone as EvaluationDone,
)
from .contracts.events import (
    Health as Health,
)
from .contracts.events import (
    Listener as Listener,
)
from .contracts.events import (
    Picture as Picture,
)
from .contracts.events import (
    RunDone as RunDone,
)
from .contracts.events import (
    RunStarted as RunStarted,
)
from .contracts.events import (
    RunStopped as RunStopped,
)
from .contracts.grids import (
    Condition as Condition,
)
from .contracts.grids import (
    GridOffer as GridOffer,
)
from .contracts.grids import (
    Published as Published,
)
from .contracts.hookspecs import (
    API_VERSION as API_VERSION,
)
from .contracts.hookspecs import (
    hookimpl as hookimpl,
)
from .contracts.jobs import (
    Executor as Executor,
)
from .contracts.jobs import (
    ExecutorOffer as ExecutorOffer,
)
from .contracts.jobs import (
    Job as Job,
)
from .contracts.jobs import (
    Outcome as Outcome,
)
from .contracts.jobs import (
    Workplace as Workplace,
)
from .contracts.offers import (
    Dataset as Dataset,
)
from .contracts.offers import (
    Defaults as Defaults,
)
from .contracts.offers import (
    Encoder as Encoder,
)
from .contracts.offers import (
    Loss as Loss,
)
from .contracts.offers import (
    Method as Method,
)
from .contracts.offers import (
    Needs as Needs,
)
from .contracts.offers import (
    NoOptions as NoOptions,
)
from .contracts.offers import (
    Objective as Objective,
)
from .contracts.offers import (
    Perturbation as Perturbation,
)
from .contracts.offers import (
    Presets as Presets,
)
from .contracts.offers import (
    Reader as Reader,
)
from .contracts.offers import (
    SignalFacts as SignalFacts,
)
from .contracts.offers import (
    Source as Source,
)
from .contracts.offers import (
    Variant as Variant,
)
from .contracts.offers import (
    ViewGenerator as ViewGenerator,
)
from .contracts.protocols import (
    Answer as Answer,
)
from .contracts.protocols import (
    Features as Features,
)
from .contracts.protocols import (
    Trial as Trial,
)
from .contracts.ranks import (
    Ranks as Ranks,
)
from .contracts.records import (
    Column as Column,
)
from .contracts.records import (
    Drop as Drop,
)
from .contracts.records import (
    DropReport as DropReport,
)
from .contracts.records import (
    Entry as Entry,
)
from .contracts.records import (
    Episode as Episode,
)
from .contracts.records import (
    Framing as Framing,
)
from .contracts.records import (
    Label as Label,
)
from .contracts.records import (
    Listing as Listing,
)
from .contracts.records import (
    Part as Part,
)
from .contracts.records import (
    Record as Record,
)
from .contracts.records import (
    Task as Task,
)
from .contracts.result_offers import (
    Metric as Metric,
)
from .contracts.result_offers import (
    Protocol as Protocol,
)
from .contracts.result_offers import (
    ReportSection as ReportSection,
)
from .contracts.result_offers import (
    Tracker as Tracker,
)
from .contracts.scores import (
    Comparison as Comparison,
)
from .contracts.scores import (
    Score as Score,
)
from .contracts.sections import (
    Findings as Findings,
)
from .contracts.sections import (
    ReportTable as ReportTable,
)
from .contracts.setup import (
    Setup as Setup,
)
from .data.array_file import (
    open_array_file as open_array_file,
)
from .data.matlab_file import (
    read_matlab_field as read_matlab_field,
)
from .data.number_table import (
    read_number_table as read_number_table,
)
from .data.recording import (
    Recording as Recording,
)
from .data.recording import (
    Wish as Wish,
)
from .data.regular_file import (
    open_regular as open_regular,
)
from .data.sheet import (
    read_sheet as read_sheet,
)
from .data.signal_file import (
    SignalFile as SignalFile,
)
from .data.signal_file import (
    format_of as format_of,
)
from .data.signal_file import (
    open_recording as open_recording,
)
from .data.signal_file import (
    read_signal_file as read_signal_file,
)
from .data.splits import (
    parts_of_patients as parts_of_patients,
)
from .data.stored_arrays import (
    ArrayFile as ArrayFile,
)
from .data.stored_arrays import (
    StoredArray as StoredArray,
)
from .data.wfdb import (
    WfdbRecord as WfdbRecord,
)
from .data.wfdb import (
    read_wfdb as read_wfdb,
)
from .data.wfdb_header import (
    Header as Header,
)
from .data.wfdb_header import (
    Signal as Signal,
)
from .data.wfdb_header import (
    read_header as read_header,
)
from .errors import (
    AmbiguousName as AmbiguousName,
)
from .errors import (
    ClocsError as ClocsError,
)
from .errors import (
    ClocsWarning as ClocsWarning,
)
from .errors import (
    DataError as DataError,
)
from .errors import (
    DataNotFound as DataNotFound,
)
from .errors import (
    DownloadError as DownloadError,
)
from .errors import (
    NonFiniteLoss as NonFiniteLoss,
)
from .errors import (
    OutOfMemory as OutOfMemory,
)
from .errors import (
    PluginError as PluginError,
)
from .errors import (
    RunFolderError as RunFolderError,
)
from .errors import (
    SettingsError as SettingsError,
)
from .errors import (
    Unavailable as Unavailable,
)
from .errors import (
    UnknownName as UnknownName,
)
from .grids.executor import (
    run_job as run_job,
)
from .settings.options import (
    option as option,
)
from .train.gpu_kernels import (
    can_run_triton as can_run_triton,
)
from .train.gpu_kernels import (
    missing_for_triton as missing_for_triton,
)
from .train.label_loss import (
    label_loss as label_loss,
)
from .train.masked_signals import (
    MaskedSignals as MaskedSignals,
)
from .train.operators import (
    gpu_operator as gpu_operator,
)
from .train.operators import (
    launching_on as launching_on,
)

__version__: str
