"""The kernels over several processes, run as NumPy by Triton's interpreter, against the plain losses in float64.

test_fused_rows.py runs this file in a process of its own: TRITON_INTERPRET must be set before the kernels are imported.
"""

# ruff: noqa: E402  what is imported depends on the variable

from __future__ import annotations

import os
from threading import Lock

assert os.environ["TRITON_INTERPRET"] == "1"

import pytest
import torch

from clocs_core.testing.threads import new_meeting, on_meeting
from clocs_core.train.ranks import Part
from clocs_plugins.contrastive_losses import choice, fused, fused_rows, launches
from clocs_plugins.contrastive_losses.fused_rows import Kind, share_of_rows
from clocs_plugins.contrastive_losses.launches import NT_XENT, PAPER, RELEASED
from clocs_plugins.contrastive_losses.nt_xent import nt_xent
from clocs_plugins.contrastive_losses.patient_nce import patient_nce
from clocs_plugins.contrastive_losses.shapes import Shapes, Tile

SHAPES = {
    "wide": Shapes(Tile(16, 32, 4, 2), Tile(32, 16, 4, 2), parts=2),
    "tall": Shapes(Tile(32, 16, 4, 2), Tile(16, 32, 4, 2), parts=3),
    "one": Shapes(Tile(16, 16, 4, 2), Tile(16, 16, 4, 2), parts=1),
}
KINDS = {"paper": PAPER, "released": RELEASED, "nt-xent": NT_XENT}
TOLERANCE = 2e-6
"""Of the gradients, relative to their norm, as for one process with float16 in two halves."""


@pytest.fixture(autouse=True)
def one_interpreter_at_a_time(monkeypatch):
    """Threads stand for processes, and the interpreter runs in one thread at a time. Unwritten memory is NaN."""
    lock = Lock()
    for module in (fused, fused_rows):
        monkeypatch.setattr(module, "launching_on", lambda tensor: lock)
    monkeypatch.setattr(choice, "_missing", lambda *device: "")
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def embeddings(views, batch, dim):
    return torch.randn(views, batch, dim, generator=torch.Generator().manual_seed(views * 1000 + batch))


def over_ranks(z, patient, kind, sizes, tau=0.1):
    """Return the sum of the shares, the gradients of all rows and of the temperature, and what was sent."""
    pairs = len(z) * (len(z) - 1) // 2
    z = z[-2:] if kind == RELEASED else z
    meeting = new_meeting(len(sizes))

    def share(group):
        part = Part(group, sizes)
        own = z[:, part.own].clone().requires_grad_()
        own_tau = torch.tensor(tau, requires_grad=True)
        ids = None if kind == NT_XENT else patient
        found = share_of_rows(own, ids, own_tau, Kind(kind, pairs, two=True), part)
        (-2.5 * found).backward()
        return found.detach(), own.grad, own_tau.grad

    found = on_meeting(meeting, share)
    loss, of_tau = (torch.stack([one[place] for one in found]).sum() for place in (0, 2))
    return loss, torch.cat([gradient for _, gradient, _ in found], dim=1), of_tau, meeting.sent


def plain(z, patient, kind, tau=0.1):
    exact, theirs = z.double().requires_grad_(), torch.tensor(tau, dtype=torch.float64, requires_grad=True)
    if kind == NT_XENT:
        loss = nt_xent(exact, theirs, "reference")
    else:
        loss = patient_nce(exact, patient, theirs, "released" if kind == RELEASED else "paper", "reference")
    (-2.5 * loss).backward()
    return loss.detach(), exact.grad[-2:] if kind == RELEASED else exact.grad, theirs.grad


@pytest.mark.filterwarnings("ignore:Patient-NCE as released")
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize(
    ("views", "sizes", "shapes"),
    [
        (2, (20, 0, 23), "wide"),  # an empty process, and rows that begin inside a tile
        (3, (5, 12), "tall"),
        (2, (16, 16), "one"),  # whole tiles, whose gradient comes from one launch
        (2, (0, 9), "one"),  # one process has all rows
        (4, (1, 1), "one"),
        (2, (17,), "tall"),  # a group of one
    ],
    ids=["20, 0 and 23", "5 and 12", "16 and 16", "0 and 9", "1 and 1", "17"],
)
def test_shares_and_gradients_are_those_of_one_process(views, sizes, shapes, kind, monkeypatch):
    """In float64, with patients that two processes share, and a temperature that requires a gradient."""
    monkeypatch.setattr(fused, "choose_shapes", lambda *size, **more: SHAPES[shapes])
    z = embeddings(views, sum(sizes), 20)
    patient = torch.arange(sum(sizes)) % max(1, sum(sizes) - 6)
    loss, gradient, of_tau, sent = over_ranks(z, patient, kind, sizes)
    expected, exact, of_theirs = plain(z, patient, kind)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6, abs=5e-6)
    assert (gradient.double() - exact).norm() <= TOLERANCE * exact.norm() + 1e-6
    assert of_tau.item() == pytest.approx(of_theirs.item(), rel=TOLERANCE, abs=20 * TOLERANCE)
    assert [what for _, what, _ in sent] == ["gather"] * (2 * len(sizes))  # embeddings and sums; nothing backwards


@pytest.mark.parametrize("kind", [PAPER, NT_XENT], ids=["paper", "nt-xent"])
def test_a_process_computes_its_own_rows_only(kind, monkeypatch):
    """The programs of sums and gradients: 1 of 4 processes has a quarter of the tiles, too few for parts."""
    counted = []

    class Counts:
        def __init__(self, kernel):
            self.kernel = kernel

        def __getitem__(self, grid):
            counted.append((self.kernel.fn.__name__, grid))
            return self.kernel[grid]

    monkeypatch.setattr(fused, "choose_shapes", lambda *size, **more: SHAPES["one"])
    for name in ("own_sums_kernel", "gradient_kernel", "sums_kernel"):
        monkeypatch.setattr(launches, name, Counts(getattr(launches, name)))
    over_ranks(embeddings(2, 64, 16), torch.arange(64), kind, (16, 16, 16, 16))
    assert sorted(counted) == [("gradient_kernel", (1, 2, 1))] * 4 + [("own_sums_kernel", (4, 1, 1))] * 4


def test_parts_of_sums_add_up(monkeypatch):
    """Where own rows are few, several programs share the columns of a row."""
    monkeypatch.setattr(fused, "choose_shapes", lambda *size, **more: SHAPES["one"])
    z, patient, found = embeddings(2, 140, 16), torch.arange(140) % 40, []
    for programs in (0, 20, 1000):  # one part, two and more
        monkeypatch.setattr(launches, "PROGRAMS", programs)
        found.append(over_ranks(z, patient, PAPER, (66, 74)))
    for loss, gradient, of_tau, _ in found[1:]:
        torch.testing.assert_close(loss, found[0][0], rtol=1e-6, atol=0)
        torch.testing.assert_close(gradient, found[0][1], rtol=1e-5, atol=1e-7)
        torch.testing.assert_close(of_tau, found[0][2], rtol=1e-5, atol=1e-6)


def test_a_second_derivative_is_refused(monkeypatch):
    monkeypatch.setattr(fused, "choose_shapes", lambda *size, **more: SHAPES["one"])
    z = embeddings(2, 4, 16)

    def ask(group):
        part = Part(group, (2, 2))
        own = z[:, part.own].clone().requires_grad_()
        (slope,) = torch.autograd.grad(
            share_of_rows(own, torch.arange(4), 0.1, Kind(PAPER, 1, two=True), part), own, create_graph=True
        )
        with pytest.raises(RuntimeError, match="first derivative only"):
            slope.sum().backward()

    on_meeting(new_meeting(2), ask)
