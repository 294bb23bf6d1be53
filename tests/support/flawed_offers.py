"""A good offer of every kind, for tests of the conformance kit; the option `flaw` breaks one thing about it.

Importable by other processes, and without torch, as a plugin's card is.
"""

from __future__ import annotations

import os
import random
import socket
import sys
import tempfile
import types
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import attrs
import fake_clock
import numpy as np

from clocs_core import (
    Answer,
    Batch,
    Column,
    Condition,
    Dataset,
    Defaults,
    Drop,
    Encoder,
    Entry,
    Episode,
    EpochDone,
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
    Published,
    Record,
    ReportSection,
    ReportTable,
    RunStarted,
    Setup,
    SignalFacts,
    Task,
    Tracker,
    Trial,
    ViewGenerator,
    Views,
    Workplace,
    option,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Generator, Tensor, nn

    from clocs_core import Ranks

RECORDS = 12
SLOW = 3.0  # s, which pass on the fake clock alone


@attrs.frozen
class Flaw:
    flaw: str = option("", "what is wrong; nothing if empty")


# ----------------------------------------------------------------------------------------------------- data set

RHYTHM = Task("rhythm", classes=("a", "b", "c"))
FINDINGS = Task("findings", classes=("x", "y"), kind="any_of")
BEATS = Task("beats", classes=("n", "v"), per="frame")
EVENTS = Task("events", classes=("x", "y"), kind="any_of", per="frame")


def write_recordings(root: Path) -> None:
    for number in range(RECORDS):
        (root / f"r{number:02d}.hea").write_text(f"p{number // 2} {number % 3}")
        np.save(root / f"r{number:02d}.npy", np.random.default_rng(number).normal(size=(2, 500)))


def scan(root: Path, task: Task, options: Flaw) -> Listing:
    flaw, headers = options.flaw, sorted(root.glob("*.hea"))
    if flaw == "empty":
        return Listing(())
    if flaw == "no-listing":
        return headers  # type: ignore[return-value]  # the flaw
    if flaw == "unstable-scan":
        random.shuffle(headers)
    if flaw == "hash-order":
        headers.sort(key=lambda path: hash(path.name))
    drops = [Drop("", "r99")] if flaw == "silent-drop" else [Drop("no signal", "r99")]
    return Listing([_entry(path, task, flaw) for path in headers], drops)


def _entry(header: Path, task: Task, flaw: str) -> Entry:
    patient, number = header.read_text().split()
    files = [header, header.with_suffix(".npy")]
    if flaw == "reads-signal":
        np.load(files[1])
    if flaw == "patient-by-task":
        patient = f"{patient}-{task.name}"
    if flaw == "two-forms" and header.stem == "r01":
        patient = patient.upper()
    if flaw == "missing-file":
        files.append(header.with_suffix(".mat"))
    if flaw == "no-files":
        files = []
    # Any: some flaws give labels of wrong types.
    label: Any = {"rhythm": int(number), "findings": frozenset({int(number) % 2})}.get(
        task.name, (Episode(0, 249, 0), Episode(250, 499, 1))
    )
    if task.name == "rhythm":
        label = {"large-label": 3, "bool-label": True, "text-label": "a", "set-label": frozenset({1})}.get(flaw, label)
    if task.name == "findings":
        label = {"int-for-any-of": 1, "large-in-set": frozenset({2})}.get(flaw, label)
    if task.name == "beats":
        backwards, unordered = (Episode(9, 3, 0),), (Episode(250, 499, 1), Episode(0, 249, 0))
        label = {"backwards-episode": backwards, "unordered-episodes": unordered}.get(flaw, label)
        label = {"large-in-episode": (Episode(0, 9, 2),), "long-episode": (Episode(0, 500, 0),)}.get(flaw, label)
        label = (Episode(0, 9, frozenset({0})),) if flaw == "set-in-episode" else label
    if task.name == "events":
        label = (Episode(0, 99, frozenset({0, 1})), Episode(50, 149, 1), Episode(300, 499, frozenset()))
        wrong: dict[str, Any] = {"large-in-episode-set": frozenset({2}), "text-in-episode-set": frozenset({"x"})}
        label = (Episode(0, 9, wrong[flaw]),) if flaw in wrong else label
    if flaw == "episodes-per-record" and task.name == "rhythm":
        label = (Episode(0, 249, 0),)
    record = "r" if flaw == "same-id" else header.stem
    about: dict[str, Any] = {"age": 40 + int(number), "sex": "female" if int(number) else None, "remark": "none"}
    odd: dict[str, dict[str, Any]] = {
        "about-beyond": {"height": 2.0},
        "about-text": {"age": "40"},
        "about-class": {"sex": "f"},
        "about-infinite": {"age": float("inf")},
    }
    about |= odd.get(flaw, {})
    return Entry(record, "" if flaw == "no-patient" else patient, label, files, about)


def load(entry: Entry, options: Flaw) -> Record:
    flaw = options.flaw
    path = next((path for path in entry.files if path.suffix == ".npy"), None)
    samples = np.ones((2, 500)) if path is None else np.load(path)
    if flaw == "noise":
        samples = samples + int.from_bytes(os.urandom(4), "little")
    if flaw == "hash-seed":
        samples = samples + hash(entry.record) % 1000003
    if flaw == "imports-torch":
        sys.modules.setdefault("torch", types.ModuleType("torch"))  # as importing it does, but quick
    if flaw == "reads-neighbours":
        np.load(entry.files[1].with_name("r05.npy"))
    if flaw == "online":
        socket.socket().close()
    if flaw == "writes":
        tempfile.TemporaryFile().close()
    if flaw == "slow":
        fake_clock.advance(SLOW)
    if flaw == "complex":
        samples = samples.astype(np.complex128)
    if flaw == "no-sample":
        samples = samples[:, :0]
    channels = ("I", "III") if flaw == "other-channel" else ("II", "I")
    unit = "mmHg" if flaw == "two-units" and entry.record == "r00" else "µV" if entry.record == "r01" else "mV"
    patient = "somebody" if flaw == "other-patient" else entry.patient
    label = None if flaw == "forgets-label" else entry.label
    return Record(patient, entry.record, channels, unit, 100.0, samples, label)


def framing_by_length(segments: int) -> Framing:
    return Framing(frame_samples=100 * segments)


DATASET = Dataset(
    name="fake",
    summary="recordings for a test",
    modality="test",
    tasks=(RHYTHM, FINDINGS, BEATS, EVENTS),
    channels=("I", "II"),
    presets={"both": ("II", "I")},
    defaults=Defaults(channels="both"),
    columns=(Column("age"), Column("sex", "category", ("female", "male")), Column("remark", "text")),
    scan=scan,
    load=load,
    options=Flaw,
)

# -------------------------------------------------------------------------------------------- views, perturbation


def needs(options: Flaw) -> Needs:
    if options.flaw == "no-needs":
        return 2  # type: ignore[return-value]  # the flaw
    if options.flaw == "impossible-needs":
        return Needs(segments=2, least_channels=0)
    if options.flaw == "needs-text":
        return Needs(segments=2, columns=(Column("remark", "text"),))
    return Needs(segments=2)


def build_views(options: Flaw) -> Callable[[Batch, Generator], Views]:
    return partial(make_views, flaw=options.flaw)


def make_views(batch: Batch, generator: Generator, flaw: str) -> Views:
    """Two segments, shifted in level by the mean of the batch's signal."""
    import torch

    signal = batch.signal.transpose(0, 1)  # (view, batch, channel, sample)
    device = signal.device
    if flaw == "noisy":
        signal = signal + torch.randn(signal.shape, generator=generator, device=device, dtype=signal.dtype)
    if flaw == "lost-sample":
        signal = signal[..., 1:]
    if flaw == "double":
        signal = signal.double()
    if flaw == "device":
        signal = signal + torch.ones(1, dtype=signal.dtype)
    if flaw == "device-by-name":
        signal = signal + torch.ones(1, dtype=signal.dtype, device="cpu")
    if flaw == "slow":
        fake_clock.advance(SLOW)
    if flaw == "divides":
        signal = signal / signal.std(-1, keepdim=True)
    if flaw == "in-place":
        batch.signal.mul_(2)
    if flaw in ("entropy", "entropy-and-draws"):
        signal = signal + int.from_bytes(os.urandom(4), "little")
    if flaw == "entropy-and-draws":
        signal = signal + torch.randn(1, generator=generator, device=device, dtype=signal.dtype)
    if flaw == "global-randomness":
        signal = signal + 0 * torch.rand(1, device=device, dtype=signal.dtype)
    if flaw == "numpy-randomness":
        signal = signal + 0 * np.random.rand()  # noqa: NPY002  the flaw
    if flaw == "order":
        signal = torch.stack([signal[0], signal[1].sort(0).values])
    if flaw == "item":
        signal = signal + 0 * batch.patient.sum().item()
    if flaw == "mask":
        signal = signal + 0 * batch.patient[batch.patient > 0].sum().to(signal.dtype)
    target = torch.zeros(len(signal), 1, device=device) if flaw == "target" else None
    wrong_pairs: dict[str, tuple[tuple[int, int], ...]] = {
        "pair-of-itself": ((0, 0),),
        "pair-twice": ((0, 1), (1, 0)),
        "pair-beyond": ((0, 2),),
    }
    pairs = wrong_pairs.get(flaw, ())
    perturb: Literal["every", "one each"] = "one each" if flaw == "one-each-of-two" else "every"
    return Views(signal, batch, target, (0,) if flaw == "encoders" else (), pairs, perturb)


VIEWS = ViewGenerator(name="fake", summary="two segments", options=Flaw, needs=needs, build=build_views)


def build_perturbation(options: Flaw, unit: str) -> Callable[[Tensor, Generator], Tensor]:
    if options.flaw == "unit" and unit == "":
        raise KeyError(unit)
    return partial(perturb, flaw=options.flaw)


def perturb(signal: Tensor, generator: Generator, flaw: str) -> Tensor:
    import torch

    if flaw == "draws-nothing":
        return signal.flip(-1)
    noise = torch.randn(signal.shape, generator=generator, device=signal.device, dtype=signal.dtype)
    if flaw == "four-dimensions":
        return signal.reshape(-1, signal.shape[-1]) + noise.reshape(-1, signal.shape[-1])
    if flaw == "single":
        return signal.float() + noise.float()
    if flaw == "device":
        return signal + torch.zeros(1, dtype=signal.dtype) + noise
    if flaw == "device-by-name":
        return signal + torch.zeros(1, dtype=signal.dtype, device="cpu") + noise
    if flaw == "batch-deviation":
        return signal + noise * signal.std()
    if flaw == "slow":
        fake_clock.advance(SLOW)
    if flaw == "divides":
        return signal / signal.std(-1, keepdim=True) + noise
    if flaw == "in-place":
        return signal.add_(noise)
    if flaw == "entropy":
        return signal + noise * int.from_bytes(os.urandom(4), "little")
    if flaw == "global-randomness":
        return signal + noise + 0 * torch.rand(1, device=signal.device, dtype=signal.dtype)
    if flaw == "item":
        return signal + noise + 0 * float(signal.abs().max())
    return signal + noise


PERTURBATION = Perturbation(name="fake", summary="noise", options=Flaw, build=build_perturbation)


def build_hum(options: Flaw, signals: SignalFacts) -> Callable[[Tensor, Generator], Tensor]:
    """Add a hum of 50 Hz at a random height: on one channel, or on the last of several."""
    if signals.frame_rate is None and options.flaw != "no-rate":
        raise ValueError("" if options.flaw == "silent-rate" else "a hum of 50 Hz needs signals of one sampling rate")
    if options.flaw == "one-rate" and signals.frame_rate != 500.0:
        raise ValueError("500 Hz are needed")
    return partial(hum, signals=signals, flaw=options.flaw)


def hum(signal: Tensor, generator: Generator, signals: SignalFacts, flaw: str) -> Tensor:
    import torch

    assert signals.frame_rate is not None
    time = torch.arange(signal.shape[-1], device=signal.device, dtype=signal.dtype) / signals.frame_rate
    height = torch.rand(signal.shape[:-1], generator=generator, device=signal.device, dtype=signal.dtype)[..., None]
    if signals.channel_axis is not None:
        if flaw == "drops-channel":
            return signal.narrow(signals.channel_axis, 0, 1)
        last = torch.arange(signal.shape[signals.channel_axis], device=signal.device) == len(signals.channels) - 1
        height = height * last[:, None]
    return signal + height * torch.sin(2 * torch.pi * 50 * time)


HUM = Perturbation(name="hum", summary="a hum", options=Flaw, build_for=build_hum)

# ----------------------------------------------------------------------------------- encoder, loss and objective


def build_encoder(options: Flaw, channels: int, samples: int, embedding_dim: int) -> nn.Module:
    from flawed_modules import FakeEncoder

    return FakeEncoder(channels, samples, embedding_dim, options.flaw)


ENCODER = Encoder(name="fake", summary="one layer", options=Flaw, build=build_encoder, sequence=True)


def build_loss(options: Flaw) -> Callable[[Tensor, Tensor], Tensor]:
    if options.flaw.startswith("ranks"):
        return partial(compute_share, flaw=options.flaw)
    return partial(compute_loss, flaw=options.flaw)


def compute_share(z: Tensor, patient: Tensor, flaw: str, ranks: Ranks | None = None) -> Tensor:
    """Compute the share of one process in the loss of all; with a flaw, of the own instances alone or too much."""
    if ranks is None:
        return compute_loss(z, patient, "")
    if flaw == "ranks-detached":
        everyone = ranks.gather(z, 1)
        everyone[:, ranks.own] = z
    else:
        everyone = ranks.gather_with_gradient(z, 1)
    loss = compute_loss(everyone, ranks.gather(patient), "")
    return loss if flaw == "ranks-twice" else loss / len(ranks.sizes)


def compute_loss(z: Tensor, patient: Tensor, flaw: str) -> Tensor:
    """Segments of an instance and instances of a patient attract each other."""
    import torch
    from torch.nn.functional import normalize

    batch = z.shape[1]
    side = z / z.norm(dim=-1, keepdim=True) if flaw == "divides" else normalize(z, dim=-1)
    other = side[1].detach() if flaw == "one-view" else side[1]
    similarity = side[0] @ other.T  # (batch, batch)
    itself = torch.eye(batch, device=z.device)
    same = (patient[:, None] == patient[None, :]).to(z.dtype)
    loss = (similarity.logsumexp(1) - (similarity * itself).sum(1)).mean() - (similarity * same).sum() / same.sum()
    if flaw == "vector":
        return loss[None]
    if flaw == "double":
        return loss.double()
    if flaw == "infinite":
        return loss + float("inf")
    if flaw in ("no-other", "no-other-of-many"):
        alone = float(flaw == "no-other-of-many" and batch == 1)
        return loss - (similarity * (same - itself)).sum() / ((same - itself).sum() + alone)
    if flaw in ("no-stranger", "no-stranger-of-many"):
        alone = float(flaw == "no-stranger-of-many" and batch == 1)
        return loss + (similarity * (1 - same)).sum() / ((1 - same).sum() + alone)
    if flaw == "infinite-for-pairs":  # of instances, where nothing else is odd
        pairs = (same.sum() == 2 * batch) & (z.detach().norm(dim=-1) > 0).all()
        return loss + torch.where(pairs, float("inf"), 0.0)
    if flaw == "device-by-name":
        return loss + torch.zeros(1, device="cpu").expand(batch).mul(similarity.diagonal()).sum()
    if flaw == "slow":
        fake_clock.advance(SLOW)
    if flaw == "batch-minus-one":
        return loss + 0 / (batch - 1)
    if flaw == "position":
        return loss + (z * torch.arange(batch, device=z.device).view(1, -1, 1)).mean()
    if flaw == "id":
        return loss + patient.to(z.dtype).mean()
    if flaw == "in-place":
        patient.add_(1)
    if flaw == "random":
        return loss + 0 * torch.rand((), device=z.device)
    if flaw == "device":
        return loss + torch.zeros(1).sum()
    if flaw == "item":
        return loss + 0 * float(z.detach().sum())
    return loss


LOSS = Loss(name="fake", summary="a contrast", options=Flaw, build=build_loss)


def build_objective(options: Flaw, setup: Setup) -> nn.Module:
    from flawed_modules import FakeObjective, RankedObjective

    kind = RankedObjective if options.flaw.startswith("ranks") else FakeObjective
    return kind(setup.encoder, setup.embedding_dim, options.flaw)


OBJECTIVE = Objective(name="fake", summary="a target that follows", options=Flaw, build=build_objective)

METHOD = Method(
    name="fake",
    summary="two segments and a contrast",
    views="fake",
    encoder="fake",
    loss="fake",
    perturbations=("fake",),
    presets={"views": {"flaw": ""}, "train": {"epochs": 3}},
)

# --------------------------------------------------------------------------------------------------------- metric


@attrs.frozen
class Score:
    """The weighted share of rows whose largest probability is of their label; of right decisions, any of."""

    flaw: str = ""

    def __call__(
        self, probability: NDArray[np.float64], label: NDArray[np.int64], weight: NDArray[np.float64]
    ) -> float:
        flaw = self.flaw
        right = (probability > 0.5) == (label == 1) if label.ndim == 2 else (probability.argmax(1) == label)[:, None]
        right = right.mean(1)
        if flaw == "text":
            return "good"  # type: ignore[return-value]  # the flaw
        if flaw == "error":
            right = 1 - right
        if flaw == "slow":
            fake_clock.advance(SLOW)
        if flaw == "random":
            np.random.rand()  # noqa: NPY002  the flaw
        if flaw == "root":
            weight = np.sqrt(weight)
        if flaw == "sum":
            return float((right * weight).sum())
        if flaw == "unweighted":
            return float(right.mean())
        if flaw == "counts-zero":
            weight = np.maximum(weight, 0.01 * weight.mean())
        if flaw == "place":
            right = right * np.linspace(0.5, 1, len(right))
        if flaw == "absent-class" and len(np.unique(label.argmax(1) if label.ndim == 2 else label)) < 3:
            raise ValueError("a class is missing")
        score = float((right * weight).sum() / weight.sum())
        if flaw == "first-row":
            return score + 1e-3 * float(probability[weight > 0][0, 0])
        if flaw == "single-precision" and len(np.unique(label.argmax(1) if label.ndim == 2 else label)) == 3:
            return np.float32(score)  # type: ignore[return-value]  # the flaw
        if flaw == "in-place":
            weight *= 0
        return score


@attrs.frozen
class Draws:
    """The score of every draw."""

    flaw: str = ""

    def __call__(
        self, probability: NDArray[np.float64], label: NDArray[np.int64], weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        return np.array([Score(self.flaw)(probability, label, weight) for weight in weights])


@attrs.frozen
class Tensors:
    """The score of every draw, from tensors."""

    flaw: str = ""

    def __call__(self, probability: Tensor, label: Tensor, weights: Tensor) -> Tensor:
        import torch

        return torch.from_numpy(Draws(self.flaw)(probability.numpy(), label.numpy(), weights.numpy()))


METRIC = Metric(name="fake", summary="accuracy", score=Score())

# ------------------------------------------------------------------------------------------------------- protocol


def predict(options: Flaw, trial: Trial) -> Answer:
    """Predict every row by the mean label of the training rows, a little sharper for a larger first dimension."""
    label = trial.train.label.astype(np.float64)
    if trial.task.kind == "one_of":
        label = np.eye(len(trial.task.classes))[trial.train.label]
    mean = np.tile(label.reshape(len(label), -1).mean(0), (len(trial.scored), 1))
    power = 1 + 0.01 * np.tanh(trial.scored.embedding[:, :1].astype(np.float64))
    if options.flaw == "slow":
        fake_clock.advance(SLOW)
    if options.flaw == "random":
        power = power * np.random.default_rng().uniform(0.9, 1.0)
    if options.flaw == "trembles":
        power = power * np.random.default_rng().uniform(1 - 1e-7, 1.0)
    if options.flaw == "peeks":
        power = power * (1 - 0.1 * np.tanh(np.abs(trial.scored.embedding).mean()))
    if options.flaw == "in-place":
        trial.train.embedding[:] = 0
    found = mean**power
    if trial.task.kind == "one_of" and options.flaw != "unlike-one":
        found = found / found.sum(1, keepdims=True)
    return Answer(found * np.inf if options.flaw == "logits" else found)


PROTOCOL = Protocol(name="fake", summary="mean label", options=Flaw, predict=predict)

# --------------------------------------------------------------------------------------- listeners and sections


class Diary(Listener):
    """Keeps the names of events."""

    def __init__(self, flaw: str) -> None:
        self.flaw = flaw

    def epoch_done(self, run: RunStarted, epoch: EpochDone) -> None:
        if self.flaw == "deaf":
            raise OSError("no server")


def listen(options: Flaw) -> Listener:
    return object() if options.flaw == "object" else Diary(options.flaw)  # type: ignore[return-value]  # the flaw


def make(options: Flaw, findings: Findings) -> list[ReportTable]:
    if options.flaw == "text":
        return "a table"  # type: ignore[return-value]  # the flaw
    if options.flaw == "needs-scores":
        return [ReportTable("t", ["value"], [[findings.scores[0].value]])]
    return [ReportTable("t", ["init"], [[one.init] for one in findings.scores])]


class Quacks:
    """Has every method of a Listener, and is none."""

    def __init__(self, _options: Flaw) -> None: ...

    run_started = epoch_done = run_stopped = run_done = evaluation_done = lambda self, *event: None


def only_without_scores(_options: Flaw, findings: Findings) -> list[ReportTable]:
    return [] if not findings.scores else [object()]  # type: ignore[list-item]  # the flaw


def conditions() -> list[Condition]:
    return [Condition(method="fake", pretraining="fake", downstream="fake", protocol="linear")]


def same_conditions() -> list[Condition]:
    return conditions() * 2


def no_conditions() -> list[Condition]:
    return []


def names_only() -> list[Condition]:
    return ["fake"]  # type: ignore[list-item]  # the flaw


def number_published(one: Condition) -> Published | None:
    return 0.5  # type: ignore[return-value]  # the flaw


def open_nothing(_options: Flaw, _workplace: Workplace) -> Executor:
    raise AssertionError("no test opens it")


GRID = GridOffer(name="fake", summary="a table", options=Flaw, conditions=conditions)
EXECUTOR = ExecutorOffer(name="fake", summary="a cluster", options=Flaw, open=open_nothing)
TRACKER = Tracker(name="fake", summary="a diary", options=Flaw, listen=listen)
SECTION = ReportSection(name="fake", summary="inits", options=Flaw, make=make)
