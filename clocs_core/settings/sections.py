"""Settings of core: the single definition of flags, help texts, TOML keys and Python arguments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import attrs

from clocs_core.settings.options import option


def _up_to(most: float) -> tuple[Callable[[float], bool], str]:
    """A rule for positive numbers; beyond `most`, a slip of the hand is likelier than a wish."""
    return (lambda value: 0 < value <= most, f"be positive and at most {most:,}")


_positive = (lambda value: 0 < value < float("inf"), "be positive")
_rate = _up_to(100)  # of Adam: weights move by about this much in every step
_dimension = _up_to(65_536)
_samples = _up_to(1_000_000)  # bootstrap samples
_not_negative = (lambda value: value >= 0, "not be negative")


@attrs.frozen
class RunSettings:
    """The method, the data set and the encoder of a run: table [run]."""

    method: str = option("", "Method to pre-train with.", metavar="NAME")
    dataset: str = option("", "Data set to train and to evaluate on.", metavar="NAME")
    encoder: str = option("", "Encoder; default: the method's own.", metavar="NAME")
    embedding_dim: int = option(128, "Dimension E of an embedding.", check=_dimension, metavar="E")
    variant: str = option("", "Variant of the method, if it has any.", metavar="NAME")
    perturbations: tuple[str, ...] | None = option(
        None, "Perturbations of the views, in this order, or none; default: the method's own.", metavar="NAMES"
    )
    seed: int = option(0, "Seed of weights, order, views and dropout; not of the split.", check=_not_negative)
    device: Literal["auto", "cpu", "cuda"] = option("auto", "Device to compute on.")
    step: Literal["auto", "plain", "captured"] = option(
        "auto", "Run training steps one by one, or capture them once as CUDA graphs, which is much quicker."
    )


@attrs.frozen
class DataSettings:
    """Choose the recordings to read, and how patients are divided: table [data]."""

    task: str = option("", "Task of the data set, such as a set of labels; default: its first.", metavar="NAME")
    channels: tuple[str, ...] = option(
        (), "Channels (leads) by name, in this order, or a preset of the data set such as 4 or 12.", metavar="NAMES"
    )
    split_seed: int = option(0, "Seed of the split of patients into parts.", check=_not_negative)
    split: Literal["60/20/20", "64/16/20", "published"] = option(
        "60/20/20", "Share of patients to train, validate and test; or the split published with the data."
    )
    normalise: Literal["min-max", "none"] = option("min-max", "Normalisation of every view, after perturbation.")
    data_root: Path | None = option(
        None,
        "Folder with one folder per data set and with prepared frames; overrides `root` of a settings file or a run. "
        "Default: CLOCS_DATA, or this platform's folder for application data.",
        metavar="FOLDER",
    )
    root: Path | None = option(None, "Folder or file of this data set.")


@attrs.frozen
class TrainSettings:
    """How the encoder is pre-trained: table [train]. Early stopping follows the paper's released code."""

    epochs: int = option(400, "Stop after this many epochs at the latest.", check=_positive)
    batch_size: int = option(256, "Instances per step.", check=_positive, metavar="K")
    contrast_batch: int | None = option(
        None,
        "Instances that are contrasted with each other, encoded one batch at a time; default: the batch size.",
        check=(lambda size: size is None or size > 0, "be positive"),
    )
    learning_rate: float = option(1e-4, "Learning rate of Adam.", check=_rate, metavar="RATE")
    instances: int | None = option(
        None,
        "Train on at most this many instances, one of every patient before a second; default: all.",
        check=(lambda most: most is None or most > 0, "be positive"),
    )
    per_view: bool = option(False, "Encode each view by itself, so that BatchNorm sees one view at a time.")
    patience: int = option(
        15, "Stop after more than this many epochs without a better validation loss.", check=_positive
    )
    keep: Literal["loss", "separation", "last"] = option(
        "loss",
        "Weights to keep: of the lowest validation loss; of the clearest separation of validation patients, for a loss "
        "that cannot be compared between epochs; or of the last epoch, without early stopping.",
    )

    @property
    def together(self) -> int:
        """Instances per step: the number that one loss is computed from."""
        return self.contrast_batch or self.batch_size


@attrs.frozen
class ScoringSettings:
    """How embeddings are scored: table [evaluate]."""

    label_fraction: tuple[float, ...] = option(
        (1.0,),
        "Label fraction F: share of the labelled training frames that a classifier may use; several with commas.",
        check=(lambda shares: bool(shares) and all(0 < f <= 1 for f in shares), "be between 0 and 1"),
        metavar="F",
    )
    part: Literal["validation", "test"] = option("test", "Part of the patients that is scored.")
    resamples: int = option(1000, "Bootstrap samples of the scored patients, for 95 % intervals.", check=_samples)
    metrics: tuple[str, ...] = option(
        (), "Metrics to report, the one to look at first in front; default: all that suit the task.", metavar="NAMES"
    )
    C: float | Literal["auto"] = option(
        1.0,
        "Inverse strength of the L2 penalty of linear evaluation; auto: of 0.001, 0.01 … 100, the one that scores best "
        "on validation patients.",
        check=(lambda c: c == "auto" or 0 < c < float("inf"), "be positive, or auto"),
        metavar="C|auto",
    )

    @property
    def parts(self) -> tuple[Literal["train", "validation", "test"], ...]:
        """The parts whose labels linear evaluation needs."""
        return ("train", "validation", "test") if self.C == "auto" else ("train", self.part)

    def __attrs_post_init__(self) -> None:
        """Refuse to choose C on the patients that are scored: their scores would be too good."""
        if self.C == "auto" and self.part == "validation":
            raise ValueError(
                "`C='auto'` chooses C on the validation patients, so that they cannot be scored as well; give a "
                "number, such as `C=1`, or score `part='test'`"
            )


@attrs.frozen
class EvaluationSettings:
    """Choose the encoder to evaluate, the data set and the protocol: table [evaluation]."""

    dataset: str = option("", "Data set to evaluate on; default: the run's own.", metavar="NAME")
    protocol: str = option(
        "linear",
        "linear: a linear model on the frozen encoder; finetune: train all weights; or a plugin's protocol.",
        metavar="NAME",
    )
    fraction_of: Literal["frames", "patients"] = option("frames", "Unit of the label fraction: frames or patients.")
    encoder: str = option("", "Architecture of an untrained encoder (with --random).", metavar="NAME")
    embedding_dim: int = option(
        128, "Dimension E of an untrained encoder (with --random).", check=_dimension, metavar="E"
    )
    seed: int = option(
        0, "Seed of head, order, dropout and untrained weights; default: the run's own.", check=_not_negative
    )
    device: Literal["auto", "cpu", "cuda"] = option("auto", "Device to compute on.")
    step: Literal["auto", "plain", "captured"] = option(
        "auto", "Run training steps one by one, or capture them once as CUDA graphs, which is much quicker."
    )


@attrs.frozen
class FinetuneSettings:
    """How all weights are fine-tuned: table [finetune]. The paper gives batch size and learning rate."""

    epochs: int = option(400, "Stop fine-tuning after this many epochs at the latest.", check=_positive)
    batch_size: int = option(256, "Frames per step of fine-tuning.", check=_positive, metavar="K")
    learning_rate: float = option(1e-4, "Learning rate of Adam in fine-tuning.", check=_rate, metavar="RATE")
    patience: int = option(
        15, "Stop fine-tuning after more than this many epochs without a better validation loss.", check=_positive
    )

    def for_training(self) -> TrainSettings:
        """Return these settings as the training loop reads them."""
        return TrainSettings(
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            patience=self.patience,
        )
