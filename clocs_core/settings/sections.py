"""The settings of a run that belong to no plugin, and the file they are kept in."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import attrs

from clocs_core.errors import SettingsError
from clocs_core.settings.options import option

Tables = dict[str, dict[str, object]]
"""A settings file, read: the keys of each table, as plain values."""

SCHEMA = 1
"""Of settings.toml and of the run folder around it. Raised when an older one can no longer be read."""

_positive = (lambda value: 0 < value < float("inf"), "be positive")
_not_negative = (lambda value: value >= 0, "not be negative")


@attrs.frozen
class RunSettings:
    """What is run."""

    method: str = option("", "the method, by name")
    dataset: str = option("", "the data set, by name")
    encoder: str = option("", "the encoder, by name; the method's own if not given")
    embedding_dim: int = option(128, "dimension E of a representation", check=_positive)
    variant: str = option("", "a variant of the method, by name, if it has any")
    perturbations: tuple[str, ...] | None = option(
        None, "perturbations of the views, applied in this order; the method's own if not given"
    )
    seed: int = option(0, "seeds weights, order, views and dropout; not the split", check=_not_negative)
    device: Literal["auto", "cpu", "cuda"] = option("auto", "where to compute")
    step: Literal["auto", "plain", "captured"] = option("auto", "steps one by one, or captured once as CUDA graphs")


@attrs.frozen
class DataSettings:
    """Which recordings, cut and divided how."""

    task: str = option("", "which question of the data set; its first if not given")
    channels: tuple[str, ...] = option((), "channels by name, in this order, or a preset of the data set")
    split_seed: int = option(0, "which patients train, validate and test", check=_not_negative)
    split: Literal["60/20/20", "64/16/20"] = option("60/20/20", "share of patients per part")
    normalise: Literal["min-max", "none"] = option("min-max", "of every view, after it is perturbed")
    data_root: str | None = option(None, "the folder that holds one folder per data set")
    root: str | None = option(None, "this data set's own folder or file")


@attrs.frozen
class TrainSettings:
    """How the encoder is pre-trained. The paper gives the first three; early stopping is as in its released code."""

    epochs: int = option(400, "at most so many epochs", check=_positive)
    batch_size: int = option(256, "instances per step", check=_positive)
    contrast_batch: int | None = option(
        None,
        "instances that are contrasted with each other, encoded a batch at a time; the batch size if not given",
        check=(lambda size: size is None or size > 0, "be positive"),
    )
    learning_rate: float = option(1e-4, "of Adam", check=_positive)
    instances: int | None = option(
        None,
        "at most so many training instances, one of every patient before a second, so that methods see equally many",
        check=(lambda most: most is None or most > 0, "be positive"),
    )
    per_view: bool = option(False, "each view through the encoder by itself: BatchNorm then sees one view at a time")
    patience: int = option(15, "stop after more than so many epochs without a better validation loss", check=_positive)

    @property
    def together(self) -> int:
        """The instances of one step, which one loss is of."""
        return self.contrast_batch or self.batch_size


@attrs.frozen
class ScoringSettings:
    """How representations are scored."""

    label_fraction: tuple[float, ...] = option(
        (1.0,),
        "shares of the labelled training frames that the classifier may use",
        check=(lambda shares: bool(shares) and all(0 < f <= 1 for f in shares), "be between 0 and 1"),
    )
    part: Literal["validation", "test"] = option("test", "whose patients are scored; choices are made on validation")
    resamples: int = option(1000, "bootstrap samples of the test patients, for 95 % intervals", check=_positive)


@attrs.frozen
class EvaluationSettings:
    """What is evaluated, on what, and how."""

    dataset: str = option("", "the data set, by name; the one of the encoder's run if not given")
    protocol: Literal["linear", "finetune"] = option("linear", "fit a linear model on the frozen encoder, or train all")
    fraction_of: Literal["frames", "patients"] = option("frames", "of what the share of labels is one")
    encoder: str = option("", "the architecture of an encoder that nobody has trained, by name")
    embedding_dim: int = option(128, "dimension E of its representation", check=_positive)
    seed: int = option(
        0, "seeds head, order, dropout and untrained weights", check=(lambda n: n >= 0, "not be negative")
    )
    device: Literal["auto", "cpu", "cuda"] = option("auto", "where to compute")
    step: Literal["auto", "plain", "captured"] = option("auto", "steps one by one, or captured once as CUDA graphs")


@attrs.frozen
class FinetuneSettings:
    """How all weights are trained. The paper gives batch size and learning rate; the rest is as released."""

    epochs: int = option(400, "at most so many epochs", check=_positive)
    batch_size: int = option(256, "frames per step", check=_positive)
    learning_rate: float = option(1e-4, "of Adam", check=_positive)
    patience: int = option(15, "stop after more than so many epochs without a better validation loss", check=_positive)

    def for_training(self) -> TrainSettings:
        """The same as the training loop reads it."""
        return TrainSettings(
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            patience=self.patience,
        )


def read_tables(path: Path) -> Tables:
    """Read a settings file. Raises SettingsError for a file that is not there, not TOML or of another schema."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise SettingsError(f"Cannot read the settings file {path}: {problem.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise SettingsError(f"{path} is not a TOML file: {problem}.") from None
    schema = document.pop("schema", SCHEMA)
    if type(schema) is not int or schema != SCHEMA:
        raise SettingsError(
            f"{path} has settings of schema {schema!r}; this version of clocs reads schema {SCHEMA}. "
            "Use the version that wrote it, or start a new run."
        )
    for key, value in document.items():
        if not isinstance(value, dict):
            raise SettingsError(f"{path}: {key!r} stands outside of a table; did you mean to put it under [run]?")
    return document


def dump_tables(tables: Mapping[str, Mapping[str, object]]) -> str:
    """The text of a settings file, for `read_tables`."""
    import tomli_w

    return tomli_w.dumps({"schema": SCHEMA, **{name: dict(table) for name, table in tables.items()}})


def dataset_folder(above: Path, name: str) -> Path:
    """The folder of a data set in the data root: its name, or that with `_` for `-` where only such a one is there."""
    folder, other = above / name, above / name.replace("-", "_")
    return other if other.is_dir() and not folder.is_dir() else folder


def data_root(given: str | None) -> Path:
    """Where data lives: what was given, or CLOCS_DATA, or this platform's place for data of applications."""
    from platformdirs import user_data_path

    chosen = given or os.environ.get("CLOCS_DATA")
    return Path(chosen).expanduser() if chosen else user_data_path("clocs", appauthor=False)
