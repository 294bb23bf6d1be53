"""The HPARAMS tab's data of a run: its settings at the start, and its status at the end.

They are in the run's own events file, so that the run has one name in all tabs. The description of an experiment is
left out on purpose: TensorBoard would use that of one run for all, and hide every setting that this run does not have.
Without it, TensorBoard lists the settings of all runs, those that differ first, and their scalars as metrics.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from tensorboard.compat.proto.summary_pb2 import DATA_CLASS_TENSOR, Summary
from tensorboard.plugins.hparams import metadata
from tensorboard.plugins.hparams.api_pb2 import STATUS_SUCCESS
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData, SessionEndInfo, SessionStartInfo

Tables = Mapping[str, Mapping[str, object]]

_LEFT_OUT = {
    *("run.method", "run.dataset", "run.seed"),  # already in the first columns
    *("evaluation.init", "evaluation.dataset", "evaluation.seed", "evaluation.protocol"),
    *("data.data_root", "data.root", "evaluation.encoder_sha256"),  # paths and hashes would make every run differ
}


def session_start(about: Mapping[str, object], settings: Tables, wall_time: float) -> Summary.Value:
    """Return the facts of the run (`about`: method, data set and the like) and every setting, as `table.name`."""
    flat = {f"{table}.{name}": value for table, values in settings.items() for name, value in values.items()}
    info = SessionStartInfo(start_time_secs=wall_time)
    for name, value in (dict(about) | {name: value for name, value in flat.items() if name not in _LEFT_OUT}).items():
        if isinstance(value, bool):
            info.hparams[name].bool_value = value
        elif isinstance(value, (int, float)) and math.isfinite(value):
            info.hparams[name].number_value = value
        else:
            info.hparams[name].string_value = _words(value)
    return _value(metadata.SESSION_START_INFO_TAG, HParamsPluginData(session_start_info=info))


def session_end(wall_time: float) -> Summary.Value:
    """Return the end of the run, with status success: the hook is called for finished runs only."""
    info = SessionEndInfo(status=STATUS_SUCCESS, end_time_secs=wall_time)
    return _value(metadata.SESSION_END_INFO_TAG, HParamsPluginData(session_end_info=info))


def _words(value: object) -> str:
    """Format a value that is neither a number nor a boolean, as in the settings file."""
    if value is None or value == () or value == []:
        return "none"
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _value(tag: str, data: HParamsPluginData) -> Summary.Value:
    about = metadata.create_summary_metadata(data)
    about.data_class = DATA_CLASS_TENSOR
    return Summary.Value(tag=tag, metadata=about, tensor=metadata.NULL_TENSOR)
