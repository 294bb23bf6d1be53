"""One small offer of every kind, on the fake recordings.

The functions are at module level, so that a plan can be pickled. Nothing here imports torch before it is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from fake_recordings import RATE, fake_entries, fake_wave

from clocs_core import (
    Answer,
    Batch,
    Condition,
    Dataset,
    Defaults,
    Encoder,
    Entry,
    Episode,
    EpochDone,
    EvaluationDone,
    Executor,
    ExecutorOffer,
    Findings,
    Framing,
    GridOffer,
    Listener,
    Listing,
    Loss,
    Method,
    Metric,
    Needs,
    Objective,
    Perturbation,
    Protocol,
    Record,
    ReportSection,
    ReportTable,
    RunDone,
    RunStarted,
    RunStopped,
    Task,
    Tracker,
    Trial,
    ViewGenerator,
    Views,
    Workplace,
    option,
)
from clocs_core.contracts.records import Label
from clocs_core.data.splits import split_patients

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Generator, Tensor, nn


@attrs.frozen
class TinyOptions:
    """Options of the data set `tiny`."""

    people: int = option(10, "patients", check=(lambda n: n > 0, "be positive"))
    labelled: bool = option(True, "whether there are labels")
    gain: float = option(1.0, "of the amplifier")


@attrs.frozen
class PairOptions:
    """Options of the views `pairs`."""

    segments: int = option(2, "frames in a row")
    gain: float = option(1.0, "of the views; the data set has an option of the same name")


@attrs.frozen
class FlatOptions:
    """Options of the encoder `flat`."""

    bias: bool = option(True, "whether there is one")
    widths: tuple[int, ...] = option((4,), "of the layers")


@attrs.frozen
class SpreadOptions:
    """Options of the loss `spread`."""

    temperature: float = option(0.1, "of the softmax", check=(lambda tau: tau > 0, "be positive"))


@attrs.frozen
class NoiseOptions:
    """Options of the perturbations `noise` and `hum`."""

    sigma: float | None = option(None, "how strong")


def tiny_scan(_root: Path, _task: Task, options: TinyOptions) -> Listing:
    """List two recordings of every patient; the class belongs to the patient."""
    entries = fake_entries(2 * options.people, classes=2)
    return Listing(entries if options.labelled else [attrs.evolve(entry, label=None) for entry in entries])


def many_scan(_root: Path, task: Task, _options: TinyOptions) -> Listing:
    """List three recordings of each of 24 patients, labelled for any task, but for every eighth patient."""
    entries = []
    for entry in fake_entries(72, visits=3, classes=2):
        kind = int(entry.patient[1:]) % 2
        labels: dict[str, Label] = {"parity": kind, "findings": frozenset({kind})}
        label = labels.get(task.name, (Episode(0, 99, kind), Episode(100, 199, 1 - kind)))
        entries.append(attrs.evolve(entry, label=label if int(entry.patient[1:]) % 8 else None))
    return Listing(entries)


def unchecked_scan(root: Path, task: Task, options: TinyOptions) -> Listing:
    """List the same, with no label among the validation patients of split seed 0."""
    entries = many_scan(root, task, options).entries
    split = split_patients((entry.patient for entry in entries), 0, "64/16/20")
    return Listing(
        [attrs.evolve(one, label=None) if split.parts[one.patient] == "validation" else one for one in entries]
    )


def tiny_load(entry: Entry, options: TinyOptions) -> Record:
    """Return two channels of two seconds: a slow or a fast wave, by patient, in noise."""
    number = int(entry.patient[1:])
    noise = np.random.default_rng([number, int(entry.record[-1])])
    wave = options.gain * fake_wave(number % 2, 200)
    samples = np.stack([wave, -wave]) + 0.3 * noise.normal(size=(2, 200))
    return Record(entry.patient, entry.record, ("left", "right"), "mV", RATE, samples, entry.label)


def tiny_framing(segments: int) -> Framing:
    """Frames of 50 samples; a method of several segments works at twice the rate."""
    return Framing(frame_samples=50, sampling_rate=None if segments == 1 else 200.0)


def pair_needs(options: PairOptions) -> Needs:
    return Needs(segments=options.segments)


def all_at_once(_options: object) -> Needs:
    return Needs(channels="all", encoder_channels="all", least_channels=2)


def two_encoders(_options: object) -> Needs:
    return Needs(segments=2, encoders=2)


def build_pairs(_options: object) -> Callable[[Batch, Generator], Views]:
    return segments_as_views


def build_twice(_options: object) -> Callable[[Batch, Generator], Views]:
    return frame_twice


def build_two(_options: object) -> Callable[[Batch, Generator], Views]:
    return encoder_of_each


def segments_as_views(batch: Batch, _generator: Generator) -> Views:
    return Views(signal=batch.signal.transpose(0, 1), batch=batch)


def frame_twice(batch: Batch, _generator: Generator) -> Views:
    return Views(signal=batch.signal.transpose(0, 1).repeat(2, 1, 1, 1), batch=batch)


def encoder_of_each(batch: Batch, _generator: Generator) -> Views:
    return Views(signal=batch.signal.transpose(0, 1), batch=batch, encoder_of_view=(0, 1))


def build_flat(options: FlatOptions, channels: int, samples: int, embedding_dim: int) -> nn.Module:
    from torch import nn

    return nn.Sequential(nn.Flatten(), nn.Linear(channels * samples, embedding_dim, bias=options.bias))


def build_spread(options: SpreadOptions) -> Callable[[Tensor, Tensor], Tensor]:
    return partial(spread, temperature=options.temperature)


def spread(z: Tensor, _patient: Tensor, temperature: float) -> Tensor:
    import torch
    from torch.nn.functional import cross_entropy, normalize

    first, second = normalize(z[0], dim=-1), normalize(z[-1], dim=-1)
    return cross_entropy(first @ second.T / temperature, torch.arange(len(first), device=z.device))


def build_heads(*_arguments: object) -> nn.Module:
    raise AssertionError("this objective is listed and described in tests, and never built")


def build_noise(_options: NoiseOptions, _unit: str) -> Callable[[Tensor, Generator], Tensor]:
    return no_noise


def no_noise(signal: Tensor, _generator: Generator) -> Tensor:
    return signal


def hit_rate(probability: NDArray[np.float64], label: NDArray[np.int64], weight: NDArray[np.float64]) -> float:
    """The weighted share of rows whose first class is guessed right."""
    hits = (probability[:, 0] > 0.5) == (label == 0) if label.ndim == 1 else (probability[:, 0] > 0.5) == label[:, 0]
    return float(np.average(hits, weights=weight)) if weight.sum() else float("nan")


@attrs.frozen
class CentreOptions:
    """Options of the protocol `centres`."""

    sharp: float = option(1.0, "how sharply classes are told apart")


def nearest_centre(options: CentreOptions, trial: Trial) -> Answer:
    """Predict recordings by their distance from the mean of each class, and say how many validation rows there are."""
    assert trial.validation is not None
    x, y = trial.train.embedding.astype(np.float64), trial.train.label
    centres = np.stack([x[y == one].mean(0) for one in range(len(trial.task.classes))])
    near = np.exp(-options.sharp * ((trial.scored.embedding[:, None] - centres) ** 2).sum(2))
    return Answer(near / near.sum(1, keepdims=True), chosen={"rows": len(trial.validation)}, notes=("Centres.",))


def tilt(_options: object, trial: Trial) -> Answer:
    """Predict frames by the mean output of the encoder, which is given with its signals."""
    assert trial.encoder is not None
    assert trial.signal is not None
    signal = trial.signal("scored", np.arange(len(trial.scored)))
    mean = trial.encoder(signal).mean(1).sigmoid().detach().double().numpy()
    return Answer(np.stack([mean, 1 - mean], axis=1))


def protocols() -> list[Protocol]:
    """A protocol of recordings that uses the validation part, and one that wants the encoder."""
    return [
        Protocol(
            name="centres",
            summary="Nearest centre.",
            options=CentreOptions,
            predict=nearest_centre,
            tasks=("one_of",),
            rows="record",
            validation=True,
        ),
        Protocol(name="tilted", summary="Mean output.", predict=tilt, wants="encoder"),
    ]


@attrs.frozen
class DiaryOptions:
    """Options of the listener `diary`."""

    every: int = option(0, "epochs between two lines; 0 writes none", check=(lambda n: n >= 0, "not be negative"))
    epochs: int = option(0, "an option that a run has too")


class Diary(Listener):
    """Writes a line of each event into the folder of the run."""

    def __init__(self, every: int) -> None:
        self.every = every

    def run_started(self, run: RunStarted) -> None:
        self._write(run.folder, f"started at {run.first_epoch}")

    def epoch_done(self, run: RunStarted, epoch: EpochDone) -> None:
        if self.every and epoch.epoch % self.every == 0:
            self._write(run.folder, f"epoch {epoch.epoch}")

    def run_stopped(self, run: RunStarted, stopped: RunStopped) -> None:
        self._write(run.folder, f"{stopped.reason} {stopped.problem}".strip())

    def run_done(self, run: RunStarted, done: RunDone) -> None:
        self._write(run.folder, f"done with {len(done.scores)} scores")

    def evaluation_done(self, done: EvaluationDone) -> None:
        if done.folder is not None:
            self._write(done.folder, f"evaluated by {done.protocol}")

    def _write(self, folder: Path, text: str) -> None:
        if not self.every:
            return
        with open(folder / "diary.txt", "a", encoding="utf-8") as file:
            file.write(text + "\n")


def keep_diary(options: DiaryOptions) -> Listener:
    return Diary(options.every)


def grids() -> list[GridOffer]:
    return [GridOffer(name="table", summary="one line", conditions=one_condition)]


def one_condition() -> list[Condition]:
    return [Condition(method="together", pretraining="tiny", downstream="tiny", protocol="linear")]


def executors() -> list[ExecutorOffer]:
    return [ExecutorOffer(name="threads", summary="nowhere", open=open_nothing)]


def open_nothing(_options: Any, _workplace: Workplace) -> Executor:
    raise AssertionError("no test opens it")


def trackers() -> list[Tracker]:
    return [Tracker(name="diary", summary="A diary.", options=DiaryOptions, listen=keep_diary)]


@attrs.frozen
class PatientOptions:
    """Options of the section `patients`."""

    most: int = option(2, "patients to list")


def list_patients(options: PatientOptions, findings: Findings) -> list[ReportTable]:
    names = sorted(set(findings.patient))[: options.most]
    rows = [(name, findings.patient.count(name), 0.12345) for name in names]
    return [ReportTable("Patients <b>", ["patient", "rows", "share"], rows, caption="The first ones.")]


def sections() -> list[ReportSection]:
    section = ReportSection(
        name="patients", summary="Patients.", title="Some patients", options=PatientOptions, make=list_patients
    )
    return [section]


PARITY = Task("parity", classes=("even", "odd"))
FINDINGS = Task("findings", classes=("even", "odd"), kind="any_of")
BEATS = Task("beats", classes=("even", "odd"), per="frame")


def tiny(name: str = "tiny", **changes: Any) -> Dataset:
    """The data set `tiny`, with any field changed."""
    fields: dict[str, Any] = {
        "name": name,
        "summary": "ten patients",
        "modality": "wave",
        "tasks": (PARITY, FINDINGS),
        "channels": ("left", "right"),
        "presets": {"1": ("right",), "both": ("right", "left")},
        "scan": tiny_scan,
        "load": tiny_load,
        "framing": tiny_framing,
        "options": TinyOptions,
        "defaults": Defaults(batch_size=8, learning_rate=0.01, epochs=3, split="64/16/20"),
        "embedded": True,
    }
    return Dataset(**(fields | changes))


def pairs() -> ViewGenerator:
    return ViewGenerator(name="pairs", summary="pairs", options=PairOptions, needs=pair_needs, build=build_pairs)


def leads() -> ViewGenerator:
    return ViewGenerator(name="leads", summary="all leads", needs=all_at_once, build=build_twice)


def flat(name: str = "flat") -> Encoder:
    return Encoder(name=name, summary="one layer", options=FlatOptions, build=build_flat)


def spread_loss() -> Loss:
    return Loss(name="spread", summary="a softmax", options=SpreadOptions, build=build_spread)


def together(name: str = "together", **changes: Any) -> Method:
    """The method `together`, with any field changed."""
    fields: dict[str, Any] = {"name": name, "summary": "pairs", "views": "pairs", "encoder": "flat", "loss": "spread"}
    return Method(**(fields | changes))


def offers() -> dict[str, Callable[[], list[Any]]]:
    """The offer hooks of one plugin that has it all, by name."""
    return {
        "clocs_datasets": lambda: [tiny()],
        "clocs_views": lambda: [pairs(), leads()],
        "clocs_perturbations": lambda: [
            Perturbation(name=name, summary=name, options=NoiseOptions, build=build_noise) for name in ("noise", "hum")
        ],
        "clocs_encoders": lambda: [flat()],
        "clocs_losses": lambda: [spread_loss()],
        "clocs_objectives": lambda: [Objective(name="heads", summary="heads", build=build_heads)],
        "clocs_methods": lambda: [
            together(),
            together("noisy", perturbations=("noise",)),
            together("preset", presets={"views": {"segments": 3}, "train": {"patience": 4, "epochs": 99}}),
            together("leads", views="leads"),
            together("stateful", loss=None, objective="heads"),
        ],
        "clocs_metrics": lambda: [
            Metric(name="hits", summary="hit rate", score=hit_rate, tasks=("one_of",)),
            Metric(name="many", summary="hit rate", score=hit_rate, tasks=("any_of",)),
        ],
        "clocs_protocols": protocols,
        "clocs_report_sections": sections,
        "clocs_listeners": trackers,
        "clocs_grids": grids,
        "clocs_executors": executors,
    }


def more_offers() -> dict[str, Callable[[], list[Any]]]:
    """The same plugin with a larger data set, and methods with other needs."""
    return offers() | {
        "clocs_datasets": lambda: [
            tiny(),
            tiny("many", tasks=(PARITY, FINDINGS, BEATS), scan=many_scan),
            tiny("unchecked", scan=unchecked_scan),
            tiny("strange", channels=("up", "down"), presets={}),
        ],
        "clocs_views": lambda: [
            pairs(),
            leads(),
            ViewGenerator(name="two", summary="s", needs=two_encoders, build=build_two),
        ],
        "clocs_methods": lambda: [together(), together("leads", views="leads"), together("two", views="two")],
    }
