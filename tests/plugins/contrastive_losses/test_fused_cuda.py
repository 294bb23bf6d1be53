"""The fused losses on a GPU, where there is one: against float64, bit for bit, captured, and compiled.

Every new tile, dimension or loss is a kernel to compile, a second or so each: the cases share them where they can.
"""

from __future__ import annotations

import pytest
import torch

from clocs_plugins.contrastive_losses.nt_xent import nt_xent
from clocs_plugins.contrastive_losses.patient_nce import patient_nce

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.filterwarnings("ignore:Patient-NCE as released"),  # of three views it trains two
]

LOSSES = {
    "paper": lambda z, patient, tau, **how: patient_nce(z, patient, tau, "paper", **how),
    "released": lambda z, patient, tau, **how: patient_nce(z, patient, tau, "released", **how),
    "nt-xent": lambda z, patient, tau, **how: nt_xent(z, tau, **how),
}
TOLERANCE = {"fp16": (1e-4, 2e-3), "near-fp32": (2e-5, 2e-5)}  # of the loss, of the gradient: relative
# Tensor cores cut off what they add to a sum, 6e-8 of it each time: over 4096 instances 1e-5, along the embedding, in
# which its gradient has no part. The gradient of tau is the difference of such sums, which are several times as large.
OF_TAU = {"fp16": 2e-3, "near-fp32": 2e-4}
both = pytest.mark.parametrize("name", ["paper", "nt-xent"])


def embeddings(views, batch, dim, dtype=torch.float32, noise=None):
    """Embeddings of N(0, 1); with `noise`, views of an instance differ by so much, as after training."""
    generator = torch.Generator("cuda").manual_seed(views * 1000 + batch)
    z = torch.randn(views, batch, dim, generator=generator, device="cuda")
    return (z if noise is None else z[:1] + noise * z).to(dtype)


def some_twice(batch):
    return torch.arange(batch, device="cuda") % max(1, batch - batch // 16)


def run(name, z, patient, tau=0.1, outer=1.0, **how):
    """Loss and gradients of embeddings and temperature."""
    z = z.detach().requires_grad_()
    tau = torch.tensor(tau, device="cuda", dtype=torch.promote_types(z.dtype, torch.float32), requires_grad=True)
    loss = LOSSES[name](z, patient, tau, **how)
    return loss.detach(), *torch.autograd.grad(loss * outer, (z, tau))


def agree(name, z, patient, precision="fp16", looser=1.0, **more):
    found = run(name, z, patient, impl="fused", precision=precision, **more)
    exact = run(name, z.double(), patient, impl="reference", **more)
    of_loss, of_gradient = (looser * one for one in TOLERANCE[precision])
    assert found[0].item() == pytest.approx(exact[0].item(), rel=of_loss, abs=of_loss)
    assert found[1].dtype == z.dtype
    assert (found[1].double() - exact[1]).norm() <= of_gradient * exact[1].norm() + 1e-6
    of_tau = looser * OF_TAU[precision]
    assert found[2].item() == pytest.approx(exact[2].item(), rel=of_tau, abs=of_tau)


@pytest.mark.parametrize(
    ("name", "precision", "sizes"),
    [
        ("paper", "fp16", [(2, 37, 20), (3, 33, 20), (2, 1, 20), (2, 70, 320)]),
        ("paper", "near-fp32", [(2, 37, 20)]),
        ("released", "fp16", [(2, 37, 20), (3, 33, 20)]),
        ("nt-xent", "fp16", [(2, 37, 20), (3, 33, 20), (2, 1, 20)]),
        ("nt-xent", "near-fp32", [(2, 37, 20)]),
    ],
)
def test_sizes_that_no_tile_divides(name, precision, sizes):
    for views, batch, dim in sizes:
        agree(name, embeddings(views, batch, dim), some_twice(batch), precision, outer=-2.5)


def test_24_views():
    agree("paper", embeddings(24, 100, 20), some_twice(100))


@pytest.mark.parametrize("case", ["none repeated", "all the same", "equal in their low 32 bits", "int32"])
def test_patients(case):
    """Ids are compared as 64 bits, whatever their sign."""
    patient = {
        "none repeated": torch.arange(37, device="cuda") - 20,
        "all the same": torch.full((37,), -3, device="cuda"),
        "equal in their low 32 bits": torch.arange(37, device="cuda") % 9 * 2**32 - 2**40,
        "int32": some_twice(37).int(),
    }[case]
    agree("paper", embeddings(2, 37, 20), patient)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_short_floats(dtype):
    agree("paper", embeddings(2, 37, 20, dtype), some_twice(37), looser=5)


def test_strided_embeddings_and_zeros():
    z = embeddings(2, 37, 20).permute(1, 2, 0).contiguous().permute(2, 0, 1)
    z[0, 1] = 0
    z[:, 2] = 0
    agree("paper", z, some_twice(37))


@pytest.mark.parametrize(
    ("name", "precision", "batch"),
    [
        *(("paper", precision, batch) for precision in TOLERANCE for batch in (256, 4096)),
        *(("nt-xent", "fp16", batch) for batch in (256, 4096)),
        ("nt-xent", "near-fp32", 256),
    ],
)
@pytest.mark.parametrize("noise", [None, 0.5], ids=["at first", "trained"])
def test_accuracy(name, precision, batch, noise):
    """What rounding to float16 costs where losses are large, and where they are small."""
    agree(name, embeddings(2, batch, 128, noise=noise), some_twice(batch), precision)


@pytest.mark.parametrize("name", ["paper", "released"])
def test_a_batch_that_torch_sorts(name):
    """Above 8192 ids are not compared one by one, and one patient may be a tenth of the batch."""
    patient = torch.arange(9000, device="cuda") % 8000
    patient[::10] = -1
    agree(name, embeddings(2, 9000, 128), patient)


@both
def test_the_same_input_gives_the_same_bits(name):
    """No sum depends on which program comes first."""
    z, patient = embeddings(3, 1000, 128), some_twice(1000)
    first = run(name, z, patient, impl="fused")
    for _ in range(3):
        assert all(torch.equal(a, b) for a, b in zip(first, run(name, z, patient, impl="fused"), strict=True))


@both
@pytest.mark.filterwarnings("ignore:The AccumulateGrad node's stream")  # the same leaf, captured and not
def test_a_captured_step_can_be_replayed_with_other_embeddings_and_patients(name):
    """Nothing that depends on the batch may have been decided at capture."""
    z, patient, tau = embeddings(2, 256, 128), some_twice(256), torch.tensor(0.1, device="cuda", requires_grad=True)
    leaf = z.clone().requires_grad_()

    def step():
        loss = LOSSES[name](leaf, patient, tau, impl="fused")
        return loss, *torch.autograd.grad(loss, (leaf, tau))

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step()
    for ids in (torch.arange(256, device="cuda"), torch.zeros_like(patient), some_twice(256).flip(0)):
        with torch.no_grad():
            leaf.copy_(torch.randn_like(leaf))
            patient.copy_(ids)
        graph.replay()
        assert all(torch.equal(a, b) for a, b in zip(captured, step(), strict=True))


@pytest.mark.filterwarnings("ignore:Synchronization debug mode")  # a prototype, it says
def test_nothing_waits_for_the_gpu():
    """A step that asks the GPU for a number stops until it has caught up."""
    z, patient = embeddings(2, 256, 128), some_twice(256)
    run("paper", z, patient, impl="fused")  # compiled before
    tau = torch.full((), 0.1, device="cuda", requires_grad=True)
    leaf = z.requires_grad_()
    torch.cuda.set_sync_debug_mode("error")
    try:
        torch.autograd.grad(patient_nce(leaf, patient, tau, impl="fused"), (leaf, tau))
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # within torch's compiler
def test_a_compiled_step_is_one_graph_with_the_same_bits():
    """torch.compile sees an operator, not what is in it."""
    patient = some_twice(256)
    step = torch.compile(lambda z: patient_nce(z, patient, 0.1, impl="fused") * 2, fullgraph=True)
    z, other = (embeddings(2, 256, 128).requires_grad_() for _ in range(2))
    loss = step(z)
    loss.backward()
    expected = patient_nce(other, patient, 0.1, impl="fused") * 2
    expected.backward()
    assert torch.equal(loss, expected)
    assert torch.equal(z.grad, other.grad)


def test_auto_is_fused_here():
    """Or somebody would have to ask for it."""
    z, patient = embeddings(2, 256, 128), some_twice(256)
    assert torch.equal(patient_nce(z, patient, 0.1), patient_nce(z, patient, 0.1, impl="fused"))


def test_autocast_changes_nothing():
    z, patient = embeddings(2, 256, 128), some_twice(256)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        found = run("paper", z, patient, impl="fused")
    assert all(torch.equal(a, b) for a, b in zip(found, run("paper", z, patient, impl="fused"), strict=True))


def test_a_nan_reaches_the_loss():
    z = embeddings(2, 256, 128)
    z[1, 3, 2] = torch.nan
    assert patient_nce(z, some_twice(256), 0.1, impl="fused").isnan()
