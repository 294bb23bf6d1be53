"""One training step, in one process and over several: losses and gradients that must be equal."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any
from unittest import mock

import attrs
import torch
from torch import Tensor, nn

from clocs_core import Batch, NoOptions, Setup, SignalFacts, Task, Views
from clocs_core.train import gradient_sums
from clocs_core.train.gradient_sums import summing_gradients
from clocs_core.train.projector import Projector
from clocs_core.train.ranks import Group, Part
from clocs_core.train.step import ContrastiveObjective, Encoding, loss_of, share_statistics
from clocs_plugins.byol import BYOLOptions, build_byol
from clocs_plugins.comet import CometOptions, build_comet
from clocs_plugins.contrastive_losses import (
    NTXentOptions,
    PatientNCEOptions,
    build_nt_xent,
    build_patient_nce,
    clocs_losses,
    row_owner,
)
from clocs_plugins.cpc import CpcOptions, build_cpc, clocs_objectives
from clocs_plugins.jepa import JepaOptions, build_jepa
from clocs_plugins.mae import MaeOptions, build_mae
from clocs_plugins.moco import MocoOptions, build_moco
from clocs_plugins.mtssl import PretextOptions, build_pretext
from clocs_plugins.rhythm_and_patient import RhythmAndPatientOptions, build_rhythm_and_patient
from clocs_plugins.supervised import build_classify
from clocs_plugins.vicreg import VICRegOptions, build_vicreg

_DRAWING = threading.Lock()  # threads share torch's default generator, from which weights are drawn
DIM, CHANNELS, SAMPLES, STRIDE, CLASSES = 5, 2, 24, 4, 3


@attrs.frozen
class Case:
    """One step. sizes: instances of each process. patients: one of each instance. norm: BatchNorm of all processes.

    ring: no process has all embeddings.
    """

    objective: str
    sizes: tuple[int, ...]
    views: int
    patients: tuple[int, ...]
    seed: int = 0
    double: bool = True
    norm: bool = False
    ring: bool = False


@attrs.frozen(eq=False)
class Outcome:
    """The loss, or a share of it, its components, and by name the gradient of every weight and all statistics."""

    loss: float
    gradients: Mapping[str, Tensor | None]
    components: Mapping[str, float]
    statistics: Mapping[str, Tensor]


class Small(nn.Module):
    """An encoder with a causal sequence of positions of 4 samples."""

    stride, width, causal = STRIDE, 6, True

    def __init__(self, norm: bool) -> None:
        super().__init__()
        self.conv = nn.Conv1d(CHANNELS, self.width, STRIDE, STRIDE)
        self.norm = nn.BatchNorm1d(self.width) if norm else nn.Identity()
        self.head = nn.Linear(self.width, DIM)

    def sequence(self, signal: Tensor) -> Tensor:
        return torch.tanh(self.norm(self.conv(signal))).transpose(1, 2)  # (n, time, width)

    def forward(self, signal: Tensor) -> Tensor:
        made: Tensor = self.head(self.sequence(signal).mean(1))
        return made


def strangers_loss(z: Tensor, patient: Tensor) -> Tensor:
    """A pure loss that knows nothing of ranks: each pair of instances counts, by whether its patient is the same."""
    flat = z.flatten(0, 1).tanh()
    same = (patient[:, None] == patient[None, :]).to(z.dtype).repeat(len(z), len(z))
    return ((flat @ flat.T - same) ** 2).mean() + z.std(1, unbiased=False).mean()


class Stranger(nn.Module):
    """An objective that knows nothing of ranks, with BatchNorm, random numbers, two calls and components."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Sequential(nn.Linear(DIM, 4), nn.BatchNorm1d(4, eps=0.1))

    def forward(
        self, encode: Callable[[Tensor], Tensor], views: Views, generator: torch.Generator
    ) -> tuple[Tensor, dict[str, Tensor]]:
        noise = torch.randn(views.signal.shape, generator=generator).to(views.signal)
        once, twice = encode(views.signal), encode(torch.cat([views.signal, views.signal + noise], 1))
        near = (once.mean(1) - twice.mean(1)).square().sum()
        wide = self.head(once.flatten(0, 1)).pow(3).mean()
        return near + wide, {"near": near, "wide": wide}


TASKS = {
    "one_of": Task("rhythm", classes=("a", "b", "c")),
    "any_of": Task("findings", classes=("a", "b", "c"), kind="any_of"),
    "number": Task("age", classes=(), kind="number", unit="years"),
}


def _contrast(loss: Callable[..., Tensor], projector: bool = False) -> nn.Module:
    return ContrastiveObjective(loss, Projector(DIM, (7, 4)) if projector else None)


def _nce(**options: Any) -> Callable[[Setup], nn.Module]:
    return lambda setup: _contrast(build_patient_nce(PatientNCEOptions(**options)))


def _projected(setup: Setup) -> Setup:
    return attrs.evolve(setup, projector=Projector(DIM, (7, 4)))


def _mae(setup: Setup) -> nn.Module:
    return build_mae(MaeOptions(masked=0.7, stretch=2), setup)


OBJECTIVES: dict[str, Callable[[Setup], nn.Module]] = {
    "patient-nce": _nce(),
    "patient-nce reference": _nce(impl="reference"),
    "patient-nce released": _nce(formula="released"),
    "patient-nce released reference": _nce(formula="released", impl="reference"),
    "patient-nce projected": lambda setup: _contrast(build_patient_nce(PatientNCEOptions()), projector=True),
    "nt-xent": lambda setup: _contrast(build_nt_xent(NTXentOptions())),
    "nt-xent reference": lambda setup: _contrast(build_nt_xent(NTXentOptions(impl="reference"))),
    "stranger's loss": lambda setup: _contrast(strangers_loss),
    "stranger": lambda setup: Stranger(),
    "byol": lambda setup: build_byol(BYOLOptions(), setup),
    "byol cosine": lambda setup: build_byol(BYOLOptions(loss="cosine"), setup),
    "pretext": lambda setup: build_pretext(PretextOptions(hidden=4), setup),
    "vicreg": lambda setup: build_vicreg(VICRegOptions(expander=(6, 4)), setup),
    "classify one_of": lambda setup: build_classify(NoOptions(), setup),
    "classify any_of": lambda setup: build_classify(NoOptions(), setup),
    "classify number": lambda setup: build_classify(NoOptions(), setup),
    "cpc": lambda setup: build_cpc(CpcOptions(ahead=2), setup),
    "jepa": lambda setup: build_jepa(JepaOptions(masked=0.7, stretch=2, predictor=4), setup),
    "mae": _mae,
    "moco": lambda setup: build_moco(MocoOptions(queue=7), setup),
    "moco projected": lambda setup: build_moco(MocoOptions(queue=7), _projected(setup)),
    "comet": lambda setup: build_comet(CometOptions(), _projected(setup)),
    "rhythm-and-patient": lambda setup: build_rhythm_and_patient(RhythmAndPatientOptions(ahead=2), _projected(setup)),
}


def in_one_process(case: Case) -> Outcome:
    """Compute the step of the whole batch."""
    encoder, objective, views, generator = _build(case)
    loss, components = loss_of(objective, Encoding([encoder]), views, generator)
    loss.backward()
    return _outcome(loss, components, encoder, objective)


def on_rank(case: Case, group: Group) -> Outcome:
    """Compute this process's share of the step, and the gradients that all processes add up to."""
    encoder, objective, views, generator = _build(case)
    share_statistics(nn.ModuleList([encoder]), objective, group)
    ranks = Part(group, case.sizes)
    with mock.patch.object(row_owner, "MOST", 0 if case.ring else 2**30):
        loss, components = loss_of(objective, Encoding([encoder]), views, generator, ranks)
    with (
        mock.patch.object(gradient_sums, "BUCKET", 8),  # several buckets even in these small networks
        summing_gradients(group, [*encoder.parameters(), *objective.parameters()]),
    ):
        loss.backward()
    return _outcome(loss, components, encoder, objective)


def difference(one: Outcome, shares: list[Outcome]) -> float:
    """Return the largest difference of loss, components, statistics and gradients; of gradients, to the largest one."""
    scale = max([1.0, *(float(g.abs().max()) for g in one.gradients.values() if g is not None)])
    found = [abs(sum(share.loss for share in shares) - one.loss) / max(1.0, abs(one.loss))]
    for name, value in one.components.items():
        found.append(abs(sum(share.components[name] for share in shares) - value) / max(1.0, abs(value)))
    for share in shares:
        assert share.gradients.keys() == one.gradients.keys()
        for name, expected in one.gradients.items():
            given = share.gradients[name]
            assert (given is None) == (expected is None), name
            if given is not None and expected is not None:
                found.append(float((given - expected).abs().max()) / scale)
        assert share.statistics.keys() == one.statistics.keys()
        for name, statistic in one.statistics.items():
            known = statistic.double()
            apart = (share.statistics[name].double() - known).abs() / known.abs().clamp(min=1)
            found.append(float(apart.max()) if apart.numel() else 0.0)
    return float("inf") if any(one != one for one in found) else max(found)


def _build(case: Case) -> tuple[nn.Module, nn.Module, Views, torch.Generator]:
    draws = torch.Generator().manual_seed(case.seed)
    dtype = torch.float64 if case.double else torch.float32
    batch = len(case.patients)
    with _DRAWING:
        torch.manual_seed(case.seed)
        encoder = Small(case.norm)
        setup = Setup(
            encoder=encoder,
            embedding_dim=DIM,
            task=TASKS.get(case.objective.partition(" ")[2], TASKS["one_of"]),
            perturbations=tuple(f"p{number}" for number in range(1, case.views)),
            signals=SignalFacts(samples=SAMPLES, channels=("I", "II"), channel_axis=-2),
            parts=(*clocs_objectives(), *clocs_losses()),
        )
        objective = OBJECTIVES[case.objective](setup)
    views_made = case.views // 2 * 2 if case.objective == "comet" else case.views  # two copies of each segment
    signal = torch.randn(views_made, batch, CHANNELS, SAMPLES, generator=draws).to(dtype)
    ids = torch.arange(batch)
    label = _labels(case.objective, batch, draws)
    held = Batch(signal.transpose(0, 1), torch.tensor(case.patients), ids, ids, ids, label)
    views = Views(signal, held, perturb="one each" if case.objective == "pretext" else "every")
    return encoder.to(dtype).train(), objective.to(dtype).train(), views, draws


def _labels(objective: str, batch: int, draws: torch.Generator) -> Tensor:
    """Return labels, some of them missing."""
    if objective.endswith("any_of"):
        found = torch.randint(0, 2, (batch, CLASSES), generator=draws).float()
        found[torch.rand(batch, generator=draws) < 0.3] = torch.nan
        return found
    if objective.endswith("number"):
        found = torch.randn(batch, generator=draws)
        found[torch.rand(batch, generator=draws) < 0.3] = torch.nan
        return found
    return torch.randint(-1, CLASSES, (batch,), generator=draws)


def _outcome(loss: Tensor, components: Mapping[str, Tensor], encoder: nn.Module, objective: nn.Module) -> Outcome:
    weights = [*(("encoder." + n, w) for n, w in encoder.named_parameters()), *objective.named_parameters()]
    gradients = {name: weight.grad for name, weight in weights}
    named = {name: float(value.detach()) for name, value in components.items()}
    statistics = {**dict(encoder.named_buffers(prefix="encoder")), **dict(objective.named_buffers())}
    return Outcome(float(loss.detach()), gradients, named, statistics)
