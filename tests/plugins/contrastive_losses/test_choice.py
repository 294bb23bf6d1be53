"""Which implementation is chosen, where, and what is said if the fused one cannot be."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from clocs_core import SettingsError, Unavailable
from clocs_core.settings.options import structure
from clocs_plugins.contrastive_losses import NTXentOptions, PatientNCEOptions, choice
from clocs_plugins.contrastive_losses.choice import SMALL, choose
from clocs_plugins.contrastive_losses.nt_xent import nt_xent
from clocs_plugins.contrastive_losses.patient_nce import patient_nce


def on_gpu(dtype=torch.float32, dim=128):
    """As much of a tensor on a GPU as the choice looks at."""
    return SimpleNamespace(is_cuda=True, device=torch.device("cuda", 0), dtype=dtype, shape=(2, 256, dim))


@pytest.fixture
def gpu(monkeypatch):
    """A machine that can run kernels, or lacks something."""

    def lacking(problem=""):
        monkeypatch.setattr(choice, "missing_for_triton", lambda device: problem)
        monkeypatch.setattr(choice, "can_run_triton", lambda device: not problem)

    return lacking


@pytest.mark.parametrize(("similarities", "expected"), [(SMALL, "reference"), (SMALL + 1, "chunked")])
def test_on_a_cpu_small_batches_are_plain_and_large_ones_in_chunks(similarities, expected):
    assert choose("auto", torch.zeros(2, 4, 3), 0.1, similarities) == expected


@pytest.mark.parametrize("impl", ["reference", "chunked"])
def test_what_is_asked_for_is_used(impl):
    assert choose(impl, torch.zeros(2, 4, 3), 0.1, 2**40) == impl


def test_a_gpu_gets_the_kernels(gpu):
    gpu()
    assert choose("auto", on_gpu(), 0.1, 2**40) == "fused"
    assert choose("fused", on_gpu(), 0.1, 1) == "fused"


@pytest.mark.parametrize(
    ("views", "tau", "message"),
    [
        (on_gpu(torch.float64), 0.1, "takes embeddings of float16, bfloat16 or float32, not torch.float64"),
        (on_gpu(dim=513), 0.1, "takes embeddings of up to 512 dimensions, not 513"),
        (on_gpu(), 0.01, r"takes temperatures from 0\.015 on, not 0\.01"),
    ],
)
def test_what_the_kernels_cannot_compute_is_computed_otherwise(views, tau, message, gpu):
    """Displayly if nobody asked for them; with the reason if somebody did."""
    gpu()
    assert choose("auto", views, tau, 2**40) == "chunked"
    assert choose("auto", views, tau, 10) == "reference"
    with pytest.raises(ValueError, match=f"impl='fused' {message}. Use impl='chunked'"):
        choose("fused", views, tau, 10)


def test_a_machine_without_what_kernels_need_has_the_other_ways(gpu):
    """`clocs verify` passes over a way that is unavailable; asked for by name, it is an error that says why."""
    gpu("needs Triton")
    assert choose("auto", on_gpu(), 0.1, 2**40) == "chunked"
    assert choose("auto", on_gpu(), 0.1, 10) == "reference"
    with pytest.raises(Unavailable, match=r"impl='fused' needs Triton\. Use impl='chunked', or 'auto'"):
        choose("fused", on_gpu(), 0.1, 10)


@pytest.mark.parametrize("loss", [lambda **how: patient_nce(torch.zeros(2, 4, 3), torch.arange(4), 0.1, **how),
                                  lambda **how: nt_xent(torch.zeros(2, 4, 3), 0.1, **how)])  # fmt: skip
def test_names_that_are_none_are_refused(loss, monkeypatch):
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    with pytest.raises(ValueError, match="impl is 'fast', expected 'auto', 'reference', 'chunked' or 'fused'"):
        loss(impl="fast")
    with pytest.raises(ValueError, match="got the precision 'fp8', expected 'fp16' or 'near-fp32'"):
        loss(precision="fp8")
    with pytest.raises(ValueError, match="impl='fused' needs an NVIDIA GPU, and the data is on cpu"):
        loss(impl="fused")


@pytest.mark.parametrize("options", [PatientNCEOptions, NTXentOptions])
def test_the_options_are_checked_before_a_run(options):
    """`-o impl=…` and `-o precision=…`."""
    with pytest.raises(SettingsError, match=r"impl.*expected one of auto, reference, chunked, fused, got 'fast'"):
        structure(options, {"impl": "fast"}, "loss")
    with pytest.raises(SettingsError, match=r"precision.*expected one of fp16, near-fp32, got 'fp8'"):
        structure(options, {"precision": "fp8"}, "loss")


@pytest.mark.slow  # the decorator imports torch's compiler
def test_checks_of_the_machine_are_marked_as_constant_as_torch_marks_them():
    marked = torch.compiler.assume_constant_result(lambda: None)
    assert vars(marked)
    assert vars(choice._missing) == vars(choice._can_run) == vars(marked)
