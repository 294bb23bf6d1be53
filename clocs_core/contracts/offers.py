"""What a plugin can offer. Each offer is a small frozen record: a name, a sentence, and functions that do the work.

The functions are plain module-level functions, so that an offer can be pickled and sent to a worker process; the
heavy imports (torch, scipy, a file format) belong inside them, so that listing the offers costs nothing.
`options` is an attrs class that the plugin declares; `-o name=value` on the command line fills it in, strictly.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import attrs

from clocs_core.contracts.batches import Batch, Views
from clocs_core.contracts.records import Entry, Framing, Listing, Record, Task

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Generator, Tensor, nn

_NAME = re.compile(r"[a-z0-9]([a-z0-9_-]*[a-z0-9])?")


def _plain_name(instance: object, attribute: attrs.Attribute[str], value: str) -> None:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ValueError(
            f"{type(instance).__name__} has the name {value!r}; use lower-case letters, digits, '-' and '_', "
            "so that it can be typed on a command line"
        )


def _one_sentence(instance: object, attribute: attrs.Attribute[str], value: str) -> None:
    if not isinstance(value, str) or not value.strip() or "\n" in value:
        raise ValueError(f"{type(instance).__name__} needs a summary of one line, got {value!r}")


@attrs.frozen
class NoOptions:
    """The options of an offer that has none."""


@attrs.frozen(kw_only=True)
class Offer:
    """What every offer has: a name to ask for it by, and one line that says what it is."""

    kind: ClassVar[str] = "offer"
    name: str = attrs.field(validator=_plain_name)
    summary: str = attrs.field(validator=_one_sentence)
    options: type[Any] = attrs.field(default=NoOptions)

    @options.validator
    def _attrs_class(self, attribute: attrs.Attribute[Any], value: type[Any]) -> None:
        if not (isinstance(value, type) and attrs.has(value)):
            raise ValueError(f"{self.kind} {self.name!r}: options must be an attrs class, got {value!r}")


@attrs.frozen
class Source:
    """A file that a data set is downloaded from: its address, its size in bytes and its SHA-256, where known.

    endings: given for a whole folder of recordings instead. Then `file` and `address` end in a slash, the folder's
    RECORDS file names the recordings, and each of them has a file of every ending, such as (".hea", ".mat").
    """

    file: str
    address: str
    size: int | None = None
    sha256: str | None = None
    endings: tuple[str, ...] = ()


@attrs.frozen
class Defaults:
    """What a data set asks for unless the user says otherwise.

    split: "60/20/20" cuts int(0.6 n) training and int(0.2 n) validation patients, the rest tests; "64/16/20"
    takes int(0.2 n) test patients first and int(0.2) of the others for validation. These two rules give every
    patient count of the paper's appendix A.2.
    """

    batch_size: int = 256
    learning_rate: float = 1e-4
    epochs: int = 400
    normalise: Literal["min-max", "none"] = "min-max"
    split: Literal["60/20/20", "64/16/20"] = "60/20/20"
    channels: str = ""  # a preset or names, comma separated; empty: all channels


def _own_rate(segments: int) -> Framing:
    return Framing()


Scan: TypeAlias = Callable[[Path, Task, Any], Listing]
Load: TypeAlias = Callable[[Entry, Any], Record]


@attrs.frozen(kw_only=True)
class Dataset(Offer):
    """A data set: what its labels mean, what its channels are called, and how to find and read its recordings.

    scan(root, task, options) -> Listing lists recordings without reading a signal. An entry that cannot serve the
    task is a drop; one that has no label for it but a good signal is an entry with label None.
    load(entry, options) -> Record reads one. It runs in worker processes that import no torch.
    framing(segments) -> Framing says how recordings become frames for a method that contrasts so many segments.
    channels: every channel by name, in the order of the files; empty where only the files know.
    presets: names for choices of channels, such as {"4": ("II", "V2", "aVL", "aVR")}.
    revision: raise it when the reader changes what it reads, so that prepared frames are made anew.
    embedded: the data set makes its own recordings and reads no file.
    homepage: where people read about it, and get it where there are no sources.
    """

    kind: ClassVar[str] = "dataset"
    modality: str
    tasks: tuple[Task, ...] = attrs.field(validator=attrs.validators.min_len(1))
    channels: tuple[str, ...]
    scan: Scan
    load: Load
    framing: Callable[[int], Framing] = _own_rate
    presets: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    defaults: Defaults = Defaults()
    licence: str = "not stated"
    sources: tuple[Source, ...] = ()
    revision: int = 1
    embedded: bool = False
    homepage: str = ""


@attrs.frozen
class Needs:
    """What one instance of a method is, and what the encoder reads of it.

    segments: how many adjacent frames of one recording make an instance.
    channels: `each` makes every channel an instance of its own, `all` keeps the channels of a frame together.
    encoder_channels: how many input channels a view has: `one`, or `all` that were chosen.
    least_channels: fewer chosen channels than this are refused.
    encoders: how many encoders the views are divided among.
    first_channels: which of the chosen channels, in their order, the first encoder reads: from this number, counted
    from 0, to before that one; None: to the last. It alone is evaluated and opened again, and on these alone.
    perturbations: `any` number of them, none included; `some`, at least one; or `random`, at least one that draws,
    because the views are copies of one signal that nothing else tells apart.
    """

    segments: int = 1
    channels: Literal["each", "all"] = "each"
    encoder_channels: Literal["one", "all"] = "one"
    least_channels: int = 1
    encoders: int = 1
    first_channels: tuple[int, int | None] = (0, None)
    perturbations: Literal["any", "some", "random"] = "any"

    def __attrs_post_init__(self) -> None:
        if self.channels == "each" and self.encoder_channels == "all":
            raise ValueError("an instance of each channel has one channel, so its encoder cannot read all of them")
        first, end = self.first_channels
        if first < 0 or (end is not None and end <= first):
            raise ValueError(f"first_channels must be a number from 0 on and a larger one or None, got {(first, end)}")
        if (first, end) != (0, None) and self.encoder_channels == "all":
            raise ValueError("an encoder that reads all channels at once cannot be evaluated on some: first_channels")

    def of_first(self, channels: tuple[str, ...]) -> tuple[str, ...]:
        """Those of the chosen channels that the first encoder reads."""
        return channels[slice(*self.first_channels)]


@attrs.frozen(kw_only=True)
class ViewGenerator(Offer):
    """Makes the views that a method contrasts.

    needs(options) -> Needs; build(options) -> function of (Batch, torch.Generator) -> Views, on the batch's device.
    """

    kind: ClassVar[str] = "views"
    needs: Callable[[Any], Needs]
    build: Callable[[Any], Callable[[Batch, Generator], Views]]


@attrs.frozen(kw_only=True)
class Perturbation(Offer):
    """Changes signals (..., sample) at random, batched, on their device. Core applies it to any method's views.

    build(options, unit) -> function of (signal, torch.Generator) -> signal. `unit` is the data set's, such as "mV".
    random: whether it draws from the generator; one that does not makes the same signal of the same signal.
    """

    kind: ClassVar[str] = "perturbation"
    build: Callable[[Any, str], Callable[[Tensor, Generator], Tensor]]
    random: bool = True


@attrs.frozen(kw_only=True)
class Encoder(Offer):
    """A network from signals (n, channel, sample) to representations (n, embedding_dim).

    build(options, channels, samples, embedding_dim) -> nn.Module, whose weights are drawn from torch's own generator.
    """

    kind: ClassVar[str] = "encoder"
    build: Callable[[Any, int, int, int], nn.Module]


@attrs.frozen(kw_only=True)
class Loss(Offer):
    """A pure function of embeddings (view, batch, dim) and patient ids (batch,) to a scalar.

    build(options) -> that function. It must take any number of views from two on, and a batch of one.
    """

    kind: ClassVar[str] = "loss"
    build: Callable[[Any], Callable[[Tensor, Tensor], Tensor]]


@attrs.frozen(kw_only=True, eq=False)
class Setup:
    """What an objective is built for. More may be added here without a change to anybody's plugin.

    encoder: the first encoder, with its first weights; a copy of it may be kept, it itself is core's.
    perturbations: names of those that the views get, in their order.
    """

    encoder: nn.Module
    embedding_dim: int
    task: Task
    perturbations: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Objective(Offer):
    """What is minimised where it has state of its own: a target network, heads.

    build(options, setup) -> nn.Module with forward(encode, views) -> scalar, where
    encode((view, batch, channel, sample)) -> (view, batch, dim); and, if it wants it, after_step(encoder), made of
    in-place tensor operations only. Its parameters are trained and its state is in the checkpoint.
    """

    kind: ClassVar[str] = "objective"
    build: Callable[[Any, Setup], nn.Module]


Presets: TypeAlias = Mapping[str, Mapping[str, object]]
"""Values for settings tables, as {"views": {"segments": 2}, "run": {"perturbations": ["gaussian"]}}."""


@attrs.frozen(kw_only=True)
class Variant:
    """Another way to run a method, such as what its authors released: presets under a name."""

    summary: str = attrs.field(validator=_one_sentence)
    presets: Presets


@attrs.frozen(kw_only=True)
class Method(Offer):
    """A way to pre-train, put together from offers by name; the parts may come from different distributions.

    presets: values for the options of its parts, as {"views": {"segments": 2}}.
    variants: other ways to run it, by name, for `-o variant=NAME`; their presets stand above its own.
    on_dataset: presets for single data sets, by name, above the variant's.
    """

    kind: ClassVar[str] = "method"
    views: str
    encoder: str
    loss: str | None = None
    objective: str | None = None
    perturbations: tuple[str, ...] = ()
    presets: Presets = attrs.field(factory=dict)
    variants: Mapping[str, Variant] = attrs.field(factory=dict)
    on_dataset: Mapping[str, Presets] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        if (self.loss is None) == (self.objective is None):
            raise ValueError(f"method {self.name!r} must name either a loss or an objective")


@attrs.frozen(kw_only=True)
class Metric(Offer):
    """How good predictions are.

    score(probability (n, class), label, weight (n,)) -> float, higher is better; label is (n,) integers for a
    one-of task and (n, class) of 0 and 1 for an any-of task. `weight` counts how often each row stands in a
    bootstrap sample. Rows without a label never come here. NaN where the metric is not defined.
    score_draws(probability, label, weights (draw, n)) -> (draw,): the same of many bootstrap samples at once, for a
    metric that can spare itself work this way, such as sorting; without it `score` is called for each.
    """

    kind: ClassVar[str] = "metric"
    tasks: tuple[str, ...] = ("one_of", "any_of")
    score: Callable[[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]], float]
    score_draws: Callable[[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]], NDArray[np.float64]] | None = (
        None
    )
