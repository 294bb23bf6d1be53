"""The arguments of `pretrain` and `evaluate` that are settings: checked and read like flags and TOML."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import attrs

from clocs_core.api.recordings import Data, InstalledDataset, Recordings
from clocs_core.errors import DataError
from clocs_core.plan.layers import Assignment, name_settings
from clocs_core.settings.options import field_types
from clocs_core.settings.sections import (
    DataSettings,
    EvaluationSettings,
    FinetuneSettings,
    RunSettings,
    ScoringSettings,
    TrainSettings,
)

F = TypeVar("F", bound=Callable[..., Any])

PRETRAIN: Mapping[str, type[Any]] = {
    "run": RunSettings,
    "train": TrainSettings,
    "evaluate": ScoringSettings,
    "data": DataSettings,
}
EVALUATE: Mapping[str, type[Any]] = {
    "evaluation": EvaluationSettings,
    "finetune": FinetuneSettings,
    "evaluate": ScoringSettings,
    "data": DataSettings,
}


def assignments_of(sections: Mapping[str, type[Any]], data: Data, settings: Mapping[str, object]) -> list[Assignment]:
    """Settings by name as assignments: those of core go to their own table, others to whichever part has them.

    Raises DataError where `data` is neither recordings nor a data set.
    """
    if not isinstance(data, (Recordings, InstalledDataset)):
        raise DataError(
            f"`data` is {type(data).__name__}, expected clocs.Recordings(x, patients=..., sampling_rate=...) or "
            "clocs.dataset(NAME)."
        )
    table_of = {field.name: table for table, cls in sections.items() for field in attrs.fields(cls)}

    def qualified(name: str) -> str:
        return f"{table_of[name]}.{name}" if name in table_of else name

    named = {qualified(name): value for name, value in {**settings, "dataset": data.name}.items()}
    return name_settings({**data.settings(), **named})


def choose_workers(data: Data, workers: int | None) -> int:
    """Processes that read recordings: one per core by default; recordings in memory are read by this process."""
    return 1 if data.in_memory else workers or os.cpu_count() or 1


def with_settings_in_signature(sections: Mapping[str, type[Any]], *left_out: str) -> Callable[[F], F]:
    """Show the settings of some sections in the signature of a function that takes them as `**settings`.

    So `help()` and a notebook's completion list them, from their one definition.
    """

    def change(function: F) -> F:
        signature = inspect.signature(function)
        own = list(signature.parameters.values())
        taken = {one.name for one in own} | set(left_out)
        more = [
            inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=kind)
            for cls in sections.values()
            for field, kind in zip(attrs.fields(cls), field_types(cls).values(), strict=True)
            if field.name not in taken
        ]
        function.__signature__ = signature.replace(parameters=[*own[:-1], *more, own[-1]])  # type: ignore[attr-defined]
        return function

    return change
