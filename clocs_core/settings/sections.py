"""Settings of core: the single definition of flags, help texts, TOML keys and Python arguments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeAlias

import attrs

from clocs_core.contracts.records import Framing, Normalisation
from clocs_core.settings.options import option, plain


def _up_to(most: float) -> tuple[Callable[[float], bool], str]:
    """Build a rule for positive numbers. A value above `most` is probably a typing error."""
    return (lambda value: 0 < value <= most, f"be positive and at most {most:,}")


_positive = (lambda value: 0 < value < float("inf"), "be positive")
_rate = _up_to(100)  # weights move by about this much in every step of Adam
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
    normalise: Normalisation = option(
        "min-max",
        "Normalisation of every view, after perturbation: each channel to 0..1; none; mean 0 and one deviation for all "
        "channels of a view; or division by a constant of the data set.",
    )
    constant: float | None = option(
        None,
        "Divisor of `normalise=constant`, in the unit of the recordings; default: the standard deviation of the "
        "training patients' frames.",
        check=(lambda value: value is None or 0 < value < float("inf"), "be positive"),
        metavar="X",
    )
    data_root: Path | None = option(
        None,
        "Folder with one folder per data set and with prepared frames; overrides `root` of a settings file or a run. "
        "Default: CLOCS_DATA, or this platform's folder for application data.",
        metavar="FOLDER",
    )
    root: Path | None = option(None, "Folder or file of this data set.")


Autocast: TypeAlias = Literal["none", "bf16"]
"""The numbers that torch's autocast lets a network compute with in training; none: float32."""


@attrs.frozen
class LearningSettings:
    """How weights are trained, in pre-training and in fine-tuning."""

    epochs: int = option(400, "Stop after this many epochs at the latest.", check=_positive)
    batch_size: int = option(256, "Instances per step; in fine-tuning, frames.", check=_positive, metavar="K")
    learning_rate: float = option(1e-4, "Learning rate, at its highest.", check=_rate, metavar="RATE")
    patience: int = option(
        15, "Stop after more than this many epochs without a better validation loss.", check=_positive
    )
    optimiser: Literal["adam", "adamw"] = option(
        "adam", "Optimiser: Adam, or AdamW, which also shrinks weights in every step."
    )
    weight_decay: float | None = option(
        None,
        "Weight decay of AdamW, times the learning rate in every step; biases and norms have none. Default: 0.01.",
        check=(lambda value: value is None or 0 <= value <= 100, "be between 0 and 100"),
        metavar="X",
    )
    warm_up: float = option(
        0.0,
        "Raise the learning rate over this many steps, or over this share of all steps if below 1.",
        check=(lambda value: 0 <= value < 1 or value == round(value) > 0, "be a share below 1 or a number of steps"),
        metavar="STEPS",
    )
    schedule: Literal["constant", "cosine"] = option(
        "constant", "Keep the learning rate, or lower it by half a cosine until the last of all epochs."
    )
    clip: float | None = option(
        None,
        "Shorten the gradient of all weights together to this length where it is longer; default: leave it.",
        check=(lambda value: value is None or 0 < value < float("inf"), "be positive"),
        metavar="NORM",
    )

    autocast: Autocast = option(
        "none", "Compute the networks in bf16 where torch's autocast does so; weights and losses stay float32."
    )

    def __attrs_post_init__(self) -> None:
        if self.weight_decay is not None and self.optimiser != "adamw":
            raise ValueError("weight_decay is that of AdamW: add `optimiser='adamw'`, or leave it out")

    @property
    def decay(self) -> float:
        """Weight decay of the optimiser."""
        return 0.0 if self.optimiser == "adam" else 0.01 if self.weight_decay is None else self.weight_decay

    def sentence(self) -> str:
        """Describe the optimiser: "Adam at 0.0001"."""
        name = "Adam" if self.optimiser == "adam" else f"AdamW (weight decay {self.decay:g})"
        unit = "of all steps" if self.warm_up < 1 else "steps"
        parts = [
            f"{name} at {self.learning_rate:g}",
            f"after a warm-up over {self.warm_up:g} {unit}" if self.warm_up else "",
            "lowered by half a cosine" if self.schedule == "cosine" else "",
            f"gradients of norm {self.clip:g} at most" if self.clip is not None else "",
        ]
        return ", ".join(part for part in parts if part)


@attrs.frozen
class TrainSettings(LearningSettings):
    """How the encoder is pre-trained: table [train]. Early stopping follows the paper's released code."""

    contrast_batch: int | None = option(
        None,
        "Instances that are contrasted with each other, encoded one batch at a time; default: the batch size.",
        check=(lambda size: size is None or size > 0, "be positive"),
    )
    instances: int | None = option(
        None,
        "Train on at most this many instances, one of every patient before a second; default: all.",
        check=(lambda most: most is None or most > 0, "be positive"),
    )
    total_steps: int | None = option(
        None,
        "Train for this many steps, to the nearest whole epoch, instead of `epochs` and without early stopping.",
        check=(lambda total: total is None or total > 0, "be positive"),
    )
    total_instances: int | None = option(
        None,
        "Train until this many instances were seen, where an instance counts in every epoch, to the nearest whole "
        "epoch, instead of `epochs` and without early stopping.",
        check=(lambda total: total is None or total > 0, "be positive"),
    )
    per_view: bool = option(False, "Encode each view by itself, so that BatchNorm sees one view at a time.")
    sync_batchnorm: bool = option(
        False,
        "Over several processes, take BatchNorm's statistics from all of them; default: each from its own instances.",
    )
    keep: Literal["loss", "separation", "last"] = option(
        "loss",
        "Weights to keep: of the lowest validation loss; of the clearest separation of validation patients, for a loss "
        "that cannot be compared between epochs; or of the last epoch, without early stopping.",
    )

    projector: tuple[int, ...] | None = option(
        None,
        "Widths of a network between embedding and loss, such as 2048,2048: linear layers, with BatchNorm and ReLU "
        "between them. It is trained and then left out. Default: none.",
        check=(
            lambda widths: widths is None or (bool(widths) and all(0 < width <= 65_536 for width in widths)),
            "have widths from 1 to 65,536",
        ),
        metavar="WIDTHS",
    )

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if self.total_steps is not None and self.total_instances is not None:
            raise ValueError("total_steps and total_instances both set the length of training: leave one of them out")

    @property
    def together(self) -> int:
        """Instances per step: the number that one loss is computed from."""
        return self.contrast_batch or self.batch_size

    @property
    def stops_early(self) -> bool:
        """Whether training may end before its last epoch."""
        return self.total_steps is None and self.total_instances is None


@attrs.frozen
class ScoringSettings:
    """How embeddings are scored: table [evaluate]."""

    label_fraction: tuple[float, ...] = option(
        (1.0,),
        "Label fraction F: share of the labelled training frames that a classifier may use; several with commas.",
        check=(lambda shares: bool(shares) and all(0 < f <= 1 for f in shares), "be above 0 and at most 1"),
        metavar="F",
    )
    part: Literal["validation", "test"] = option("test", "Part of the patients that is scored.")
    resamples: int = option(1000, "Bootstrap samples of the scored patients, for 95 % intervals.", check=_samples)
    permutations: int = option(
        1000,
        "Permutations of the paired test of each comparison; 0: no test.",
        check=(lambda count: 0 <= count <= 100_000, "be between 0 and 100,000"),
    )
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
    pictures: bool = option(True, "Draw the pictures of the page, which takes seconds; the scores do not need them.")

    @property
    def parts(self) -> tuple[Literal["train", "validation", "test"], ...]:
        """The parts whose labels linear evaluation needs."""
        return ("train", "validation", "test") if self.C == "auto" else ("train", self.part)

    def __attrs_post_init__(self) -> None:
        """Refuse label fractions that names cannot tell apart, and to choose C on the patients that are scored."""
        names = [f"{share:g}" for share in self.label_fraction]  # as files and tables write it
        if len(set(names)) < len(names):
            given = ", ".join(map(str, self.label_fraction))
            raise ValueError(f"label_fraction has a value twice, to six digits: {given}; give each once")
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
        "linear: a linear model on the frozen encoder; linear-record: the same on one vector per recording; finetune: "
        "train all weights; patient-identification: find patients by another recording of theirs; or a plugin's "
        "protocol.",
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
class FinetuneSettings(LearningSettings):
    """How all weights are fine-tuned: table [finetune]. The paper gives batch size and learning rate."""

    layer_decay: float = option(
        1.0,
        "Factor of the learning rate from each block of the encoder to the block before it, counted from the head; "
        "1: the same rate for all.",
        check=(lambda factor: 0 < factor <= 1, "be above 0 and at most 1"),
        metavar="FACTOR",
    )

    def for_training(self) -> TrainSettings:
        """Return these settings as the training loop reads them."""
        shared = (field.name for field in attrs.fields(LearningSettings))
        return TrainSettings(**{name: getattr(self, name) for name in shared})


_TABLES: dict[str, type[Any]] = {
    "run": RunSettings,
    "data": DataSettings,
    "pre-training data": DataSettings,
    "train": TrainSettings,
    "evaluate": ScoringSettings,
    "evaluation": EvaluationSettings,
    "finetune": FinetuneSettings,
    "framing": Framing,
    "pretrain_framing": Framing,
    "evaluate_framing": Framing,
}


def default_settings(table: str) -> dict[str, object]:
    """Return the defaults of a table of core, as a file has them; empty for a table of a plugin.

    A file of an earlier version lacks the settings that came later: it was made with their defaults.
    """
    return plain(_TABLES[table]()) if table in _TABLES else {}
