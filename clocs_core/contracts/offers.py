"""The offers of a plugin. Each offer is a frozen record: a name, a summary, and functions that do the work.

The functions are module-level functions, so that an offer can be pickled and sent to a worker process. Heavy imports
(torch, scipy, a file format) belong inside them, so that listing the offers costs nothing.
`options` is an attrs class of the plugin; `-o name=value` on the command line sets its fields, checked by type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import attrs

from clocs_core.contracts.batches import Batch, Views
from clocs_core.contracts.records import Column, Entry, Framing, Listing, Normalisation, Record, Task

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn

    from clocs_core.contracts.setup import Setup


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
    """The options class of an offer without options."""


@attrs.frozen(kw_only=True)
class Offer:
    """The fields of every offer: the name that selects it, a summary of one line, and the class of its options."""

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
    """A file to download for a data set: its address and, where known, its size in bytes and its SHA-256.

    endings: set for a whole folder of recordings instead of a file. Then `file` and `address` end in a slash, the
    folder's RECORDS file names the recordings, and each recording has a file of every ending, such as (".hea", ".mat").
    sums: address of a list of SHA-256 that the publisher keeps beside the files, often called SHA256SUMS.txt: a
    checksum and a path on each line. Files that it names are checked against it.
    """

    file: str
    address: str
    size: int | None = None
    sha256: str | None = None
    endings: tuple[str, ...] = ()
    sums: str = ""


@attrs.frozen
class Defaults:
    """A data set's defaults for settings that the user does not give.

    split: "60/20/20" takes int(0.6 n) training and int(0.2 n) validation patients; the rest are test patients.
    "64/16/20" takes int(0.2 n) test patients first, then int(0.2) of the others for validation. These two rules give
    every patient count of the paper's appendix A.2.
    """

    batch_size: int = 256
    learning_rate: float = 1e-4
    epochs: int = 400
    normalise: Normalisation = "min-max"
    split: Literal["60/20/20", "64/16/20"] = "60/20/20"
    channels: str = ""  # a preset, or comma-separated names; empty: all channels


def _own_rate(segments: int) -> Framing:
    return Framing()


Scan: TypeAlias = Callable[[Path, Task, Any], Listing]
Load: TypeAlias = Callable[[Entry, Any], Record]


@attrs.frozen(kw_only=True)
class Dataset(Offer):
    """A data set: its tasks, its channels, and functions that find and read its recordings.

    scan(root, task, options) -> Listing lists recordings without reading a signal. A recording that cannot serve the
    task becomes a drop; one with a good signal but no label for the task becomes an entry with label None.
    load(entry, options) -> Record reads one recording. It runs in worker processes that import no torch.
    framing(segments) -> Framing cuts recordings into frames for a method that contrasts `segments` segments.
    channels: every channel by name, in the order of the files; empty where only the files name them.
    presets: names for sets of channels, such as {"4": ("II", "V2", "aVL", "aVR")}.
    revision: raise it when the reader reads anything differently, so that prepared frames are made anew.
    embedded: the data set generates its recordings and reads no file.
    homepage: page that describes the data set, and offers it where `sources` is empty.
    columns: what `Entry.about` can have, such as Column("age") and Column("sex", "category", ("female", "male")).
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
    columns: tuple[Column, ...] = ()

    @property
    def has_time_scale(self) -> bool:
        """Whether it says how its recordings are framed. Otherwise, frames have 2,500 samples at any rate."""
        return self.framing is not _own_rate


@attrs.frozen(kw_only=True)
class Reader:
    """One of several encoders of a method: its architecture, and the part of a frame that it reads.

    name: its name in reports and files, such as "ppg".
    channels: the chosen channels that it reads, all at once, as (start, stop) counted from 0; stop is excluded, None
    means to the last.
    average: it reads means of so many adjacent samples. Use it for signals that change more slowly than the others.
    encoder: name of its architecture; empty: that of the run. options: options of the architecture, where it is named.
    """

    name: str = attrs.field(validator=_plain_name)
    channels: tuple[int, int | None] = (0, None)
    average: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    encoder: str = ""
    options: Mapping[str, object] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        _refuse_span("channels", self.channels)
        if self.options and not self.encoder:
            raise ValueError(f"reader {self.name!r} has options, so it must name the encoder that has them")


def _refuse_span(name: str, span: tuple[int, int | None]) -> None:
    first, end = span
    if first < 0 or (end is not None and end <= first):
        raise ValueError(f"{name} must be a number from 0 on and a larger one or None, got {span}")


@attrs.frozen
class Needs:
    """The instances that a method needs, and the input of its encoders.

    segments: adjacent frames of one recording in an instance.
    recordings: different recordings of one patient in an instance, with `segments` frames each.
    columns: facts about recordings that the views need, such as Column("age"); they are in `Batch.about`.
    channels: `each` makes every channel a separate instance, `all` keeps the channels of a frame together.
    encoder_channels: input channels of a view: `one`, or `all` chosen channels.
    least_channels: smallest number of chosen channels that is accepted.
    encoders: number of encoders that share the views.
    readers: one for each encoder, where encoders differ in architecture, channels or length. Then every view has all
    channels, an encoder cuts its own part out of it, and each encoder is evaluated and saved.
    first_channels: the chosen channels that the first encoder reads, as (start, stop) counted from 0; stop is
    excluded, None means to the last. Only the first encoder is evaluated and reloaded, and only on these channels.
    perturbations: `any` number of perturbations, none included; `some`, at least one; or `random`, at least one that
    draws random numbers, because the views are copies of one signal and differ by nothing else.
    """

    readers: tuple[Reader, ...] = attrs.field(default=(), kw_only=True)
    segments: int = 1
    channels: Literal["each", "all"] = "each"
    encoder_channels: Literal["one", "all"] = "one"
    least_channels: int = 1
    encoders: int = attrs.field(default=attrs.Factory(lambda self: len(self.readers) or 1, takes_self=True))
    first_channels: tuple[int, int | None] = (0, None)
    perturbations: Literal["any", "some", "random"] = "any"
    recordings: int = 1
    columns: tuple[Column, ...] = ()

    def __attrs_post_init__(self) -> None:
        if self.channels == "each" and self.encoder_channels == "all":
            raise ValueError("an instance of each channel has one channel, so its encoder cannot read all of them")
        _refuse_span("first_channels", self.first_channels)
        if self.readers:
            self._refuse_other_readers()
        if self.first_channels != (0, None) and self.encoder_channels == "all":
            raise ValueError("an encoder that reads all channels at once cannot be evaluated on some: first_channels")

    def _refuse_other_readers(self) -> None:
        names = [one.name for one in self.readers]
        if len(set(names)) < len(names) or self.encoders != len(names):
            raise ValueError(f"readers must have a name of their own for each of {self.encoders} encoders, got {names}")
        if self.encoder_channels != "all":
            raise ValueError('readers cut their channels out of all of them: encoder_channels must be "all"')

    @property
    def channels_at_least(self) -> int:
        """The number of chosen channels that every encoder of the method finds its own in."""
        spans = [one.channels for one in self.readers] or [self.first_channels]
        return max(self.least_channels, *(end or first + 1 for first, end in spans))

    def of_first(self, channels: tuple[str, ...]) -> tuple[str, ...]:
        """Return the chosen channels that the first encoder reads."""
        return channels[slice(*(self.readers[0].channels if self.readers else self.first_channels))]


@attrs.frozen(kw_only=True)
class ViewGenerator(Offer):
    """A generator of the views that a method contrasts.

    needs(options) -> Needs; build(options) -> function of (Batch, torch.Generator) -> Views, on the batch's device.
    """

    kind: ClassVar[str] = "views"
    needs: Callable[[Any], Needs]
    build: Callable[[Any], Callable[[Batch, Generator], Views]]


@attrs.frozen(kw_only=True)
class SignalFacts:
    """The signals of a run, as its views have them: (view, batch, channel, sample).

    unit: the data set's, such as "mV". frame_rate: sampling rate of a frame in Hz; None where recordings differ in it.
    samples: length of a frame. channels: names of the chosen channels.
    channel_axis: -2 where a view has all these channels, in this order; None where it has one of them.
    """

    unit: str = ""
    frame_rate: float | None = None
    samples: int = 0
    channels: tuple[str, ...] = ()
    channel_axis: int | None = None


Perturb: TypeAlias = "Callable[[Tensor, Generator], Tensor]"


@attrs.frozen(kw_only=True)
class Perturbation(Offer):
    """A random change of signals (..., sample), batched, on their device. Core applies it to any method's views.

    build(options, unit) -> function of (signal, torch.Generator) -> signal. `unit` is the data set's, such as "mV".
    build_for(options, signals) -> the same, for a perturbation that needs to know more than the unit. It takes the
    place of `build`. `signals` are SignalFacts. It raises ValueError where it cannot work on such signals.
    random: whether it draws from the generator; without draws, equal signals stay equal.
    """

    kind: ClassVar[str] = "perturbation"
    build: Callable[[Any, str], Perturb] | None = None
    random: bool = True
    build_for: Callable[[Any, SignalFacts], Perturb] | None = None

    def __attrs_post_init__(self) -> None:
        if (self.build is None) == (self.build_for is None):
            raise ValueError(f"perturbation {self.name!r} must have either `build` or `build_for`")

    def make(self, options: Any, signals: SignalFacts) -> Perturb:
        """Build the perturbation for the signals of a run."""
        if self.build_for is not None:
            return self.build_for(options, signals)
        assert self.build is not None  # one of the two is there
        return self.build(options, signals.unit)


Presets: TypeAlias = Mapping[str, Mapping[str, object]]
"""Values for the tables of the settings, such as {"views": {"segments": 2}, "run": {"perturbations": ["gaussian"]}}."""


@attrs.frozen(kw_only=True)
class Encoder(Offer):
    """A network from signals (n, channel, sample) to representations (n, embedding_dim).

    build(options, channels, samples, embedding_dim) -> nn.Module; torch's default generator draws its weights.
    sequence: the module also has `sequence(signal)`, from signals of any length to (n, time, width), and two integers:
    `stride`, the samples from one position to the next, and `width`. Position t describes the samples from
    t * stride on, so time is samples / stride, rounded up. The module may say `causal = True`: position t then sees no
    sample from (t + 1) * stride on. It may have `of_sequence(sequence)`, from a sequence to the representations: an
    objective that needs both then takes one pass instead of two.
    presets: settings that suit it, such as {"data": {"normalise": "constant"}}. They replace those of the method and of
    the data set, for options that the run has; but a method with a learning rate of its own keeps its training.
    """

    kind: ClassVar[str] = "encoder"
    build: Callable[[Any, int, int, int], nn.Module]
    sequence: bool = False
    presets: Presets = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class Loss(Offer):
    """A pure function of embeddings (view, batch, dim) and patient ids (batch,) that returns a scalar.

    build(options) -> that function. It must accept two or more views, and a batch of one.
    A function with an argument `ranks` gets the own embeddings of each of several processes and a `Ranks`, and returns
    its share of the loss. Any other gets the embeddings of all processes, in each of them.
    """

    kind: ClassVar[str] = "loss"
    build: Callable[[Any], Callable[[Tensor, Tensor], Tensor]]


@attrs.frozen(kw_only=True)
class Objective(Offer):
    """A loss that has state, such as a target network or heads.

    build(options, setup) -> nn.Module with forward(encode, views) -> scalar, where
    encode((view, batch, channel, sample)) -> (view, batch, dim). It may have after_step(encoder), which must use
    in-place tensor operations only. Its parameters are trained and its state is in the checkpoint.
    forward may also return (scalar, {name: scalar}): components of the loss to log, such as its terms.
    sequence: it calls `encode.sequence`, so that it needs an encoder that has a sequence.
    columns: facts about recordings that it needs, such as Column("age"); they are in `views.batch.about`.
    A forward with an argument `ranks` gets the own instances of each of several processes and a `Ranks`, and returns
    its share of the loss. Any other gets all instances, in each process.
    of_embeddings: forward takes from the signals only what `encode(views.signal)` returns. Ids, labels, columns and
    targets it may use. Then a run can contrast more instances than the device encodes at once (`contrast_batch`).
    objectives, losses: names of other offers that it builds on, of any plugin. Core finds them before anything is read,
    and `setup.objective(name)` and `setup.loss(name)` build them.
    """

    kind: ClassVar[str] = "objective"
    build: Callable[[Any, Setup], nn.Module]
    sequence: bool = False
    columns: tuple[Column, ...] = ()
    of_embeddings: bool = False
    objectives: tuple[str, ...] = ()
    losses: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Variant:
    """Named presets of a method, such as those of its authors' released code."""

    summary: str = attrs.field(validator=_one_sentence)
    presets: Presets


@attrs.frozen(kw_only=True)
class Method(Offer):
    """A pre-training method that combines offers by name; the parts may come from different distributions.

    presets: values for the options of its parts, such as {"views": {"segments": 2}}.
    variants: presets by name for `-o variant=NAME`; they override `presets`.
    on_dataset: presets by name of the data set; they override the variant's.
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
