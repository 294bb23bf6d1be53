"""What all perturbations have in common, as they are offered."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import attrs
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from clocs_core import Batch, Views
from clocs_core.train.normalise import leave
from clocs_core.train.step import ViewMaker
from clocs_plugins.perturbations import clocs_perturbations

OFFERS = {offer.name: offer for offer in clocs_perturbations()}
FIXED = ("flip_y", "flip_x", "scaling")
PAGE = Path(__file__).parents[3] / "docs" / "perturbations.md"


def perturb(name, signal, seed=0, unit="mV"):
    offer = OFFERS[name]
    return offer.build(offer.options(), unit)(signal, torch.Generator().manual_seed(seed))


def signals(*shape, dtype=torch.float64):
    return torch.randn(shape, generator=torch.Generator().manual_seed(9), dtype=dtype)


def test_the_offers_are_those_of_the_paper_and_of_mt_ssl():
    """Appendix B, then what appendix C lists for MT-SSL; two of them are in both under two names."""
    names = ["gaussian", "flip_y", "flip_x", "sa_t", "sa_f", "scaling", "permutation", "time_warp"]
    assert list(OFFERS) == names
    assert tuple(name for name in names if not OFFERS[name].random) == FIXED


@pytest.mark.parametrize("name", OFFERS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(50,), (3, 200), (2, 3, 1, 61)])
def test_shape_dtype_and_the_signal_itself_are_kept(name, shape, dtype):
    """Batches are shared with the store: the argument is not written to."""
    signal = signals(*shape).to(dtype)
    before = signal.clone()
    found = perturb(name, signal)
    assert (found.shape, found.dtype) == (signal.shape, dtype)
    assert torch.equal(signal, before)
    assert not torch.equal(found, before)


@pytest.mark.parametrize("name", OFFERS)
def test_the_result_follows_the_seed(name):
    """The same seed, the same result; another seed another, unless nothing is drawn."""
    signal = signals(4, 100)
    assert torch.equal(perturb(name, signal, seed=1), perturb(name, signal, seed=1))
    assert torch.equal(perturb(name, signal, seed=1), perturb(name, signal, seed=2)) == (name in FIXED)


@pytest.mark.parametrize("name", OFFERS)
def test_copies_that_share_memory_are_perturbed_apart(name):
    """SimCLR's two views are one tensor, expanded: each copy must get what is drawn for it."""
    signal = signals(5, 1, 80)
    first, second = perturb(name, signal.expand(2, 5, 1, 80))
    assert torch.equal(first, second) == (name in FIXED)
    one_by_one = perturb(name, signal.expand(2, 5, 1, 80).contiguous())
    assert torch.equal(torch.stack([first, second]), one_by_one)


@pytest.mark.parametrize("name", OFFERS)
def test_strided_signals_give_the_same_result(name):
    """Segments are views along a transposed axis; only the values count."""
    signal = signals(3, 60, 4).transpose(1, 2)
    torch.testing.assert_close(perturb(name, signal), perturb(name, signal.contiguous()), atol=1e-12, rtol=0)


@pytest.mark.parametrize("name", OFFERS)
@pytest.mark.parametrize("samples", [1, 2, 3, 5, 8, 19])
def test_signals_of_a_few_samples_are_perturbed_too(name, samples):
    """Shorter than the pieces or the window that the defaults ask for: no error, and nothing that is no number."""
    found = perturb(name, signals(4, samples))
    assert found.shape == (4, samples)
    assert found.isfinite().all()


@pytest.mark.parametrize("name", OFFERS)
def test_the_gradient_goes_through(name):
    """Nothing trains before a perturbation today; a plugin's learnt front end would."""
    signal = signals(2, 26).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: perturb(name, x, unit=""), (signal,))


@pytest.mark.parametrize("name", OFFERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_nothing_waits_for_the_device(name, dtype):
    """A fake tensor has no values: reading one, or a shape made of values, raises."""
    with FakeTensorMode():
        signal = torch.randn(2, 3, 1, 250, dtype=dtype, requires_grad=True)
        found = perturb(name, signal)
        found.sum().backward()
    assert found.shape == signal.grad.shape == (2, 3, 1, 250)


@pytest.mark.parametrize("name", OFFERS)
def test_autocast_does_not_touch_the_signal(name):
    """A training step under autocast would otherwise see signals with three digits."""
    signal = signals(4, 300, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = perturb(name, signal)
    assert torch.equal(inside, perturb(name, signal))


@pytest.mark.parametrize(
    ("one", "other"), [("permutation", "time_warp"), ("sa_t", "flip_y"), ("gaussian", "scaling"), ("sa_f", "sa_t")]
)
def test_perturbations_are_applied_in_the_order_given(one, other):
    """In the code that the authors released, the order was fixed whatever the list said."""
    signal, ids = signals(3, 2, 1, 120), torch.arange(3)

    def views(*names):
        made = tuple(OFFERS[name].build(OFFERS[name].options(), "mV") for name in names)
        maker = ViewMaker(lambda batch, _: Views(batch.signal.transpose(0, 1), batch), made, normalise=leave)
        return maker(Batch(signal, ids, ids, ids, ids), torch.Generator().manual_seed(3)).signal

    generator = torch.Generator().manual_seed(3)
    expected = signal.transpose(0, 1)
    for name in (one, other):
        expected = OFFERS[name].build(OFFERS[name].options(), "mV")(expected, generator)
    assert torch.equal(views(one, other), expected)
    assert not torch.allclose(views(one, other), views(other, one))


def test_the_page_lists_every_option_with_its_default():
    """And whether a perturbation draws: what a reader chooses by."""
    table = PAGE.read_text(encoding="utf-8").partition("| name |")[2].partition("\n\n")[0]
    rows = {row[0]: row[1:] for row in re.findall(r"^\| `(\w+)` \|.*\|(.*)\| (yes|no) \|$", table, re.MULTILINE)}
    assert list(rows) == list(OFFERS)
    for name, (told, draws) in rows.items():
        assert (draws == "yes") == OFFERS[name].random
        options = attrs.asdict(OFFERS[name].options())
        assert re.findall(r"`(\w+)`", told) == list(options)
        assert all(f"`{option}` {default}" in told for option, default in options.items() if default is not None)


def test_the_card_imports_no_torch():
    """Every command reads it."""
    code = (
        "import sys, clocs_plugins.perturbations as card; card.clocs_perturbations(); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
