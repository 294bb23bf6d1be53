"""The blocks of the encoder as kernels in triton, held against the plain modules in float64.

The kernels run here in two ways: on a GPU, and by triton's interpreter on a CPU. The interpreter must be chosen before
triton is imported, so one test runs this file again, in a process of its own, with TRITON_INTERPRET=1.
"""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from clocs_plugins.cnn import fused_geometry as geometry
from clocs_plugins.cnn.block_fused import can_fuse, evaluated_blocks, fused_blocks, layer_of
from clocs_plugins.cnn.dropout_bits import draw_noise

triton = pytest.importorskip("triton", reason="triton is not installed")

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
OLD = tuple(int(part) for part in triton.__version__.split(".")[:2]) < (3, 7)
LEVELS = 1 << 16
CLOSE = 2e-6 if INTERPRETED else 5e-5  # of the largest value: float32, or three products of bfloat16 on tensor cores


@pytest.fixture(params=["cpu"] if INTERPRETED else [pytest.param("cuda", marks=pytest.mark.cuda)])
def device(request, monkeypatch):
    """Where the kernels run. Small tiles and two programs, so that small signals fill several of each."""
    for table in ("CONVOLVE", "DIFFERENTIATE"):
        monkeypatch.setattr(geometry, table, dict.fromkeys(getattr(geometry, table), geometry.Tile(16, 4)))
    monkeypatch.setattr(geometry, "FILTER_ROWS", dict.fromkeys(geometry.FILTER_ROWS, 32))
    for tile in ("THIN_CONVOLVE", "THIN_DIFFERENTIATE"):
        monkeypatch.setattr(geometry, tile, geometry.Tile(32, 4))
    monkeypatch.setattr(geometry, "PROGRAMS", 2)
    monkeypatch.setattr(geometry, "SHARED_VALUES", 1)
    monkeypatch.setattr("clocs_plugins.cnn.fused_backward._COLUMNS", 128)
    if INTERPRETED:
        for precision in ("CONVOLVE_PRECISION", "PRECISION"):
            monkeypatch.setattr(geometry, precision, "ieee")  # all it knows; it adds nothing to the error
    return torch.device(request.param)


def make_blocks(channels, widths, kernel, stride, seed=0):
    """Convolutions and norms in float64. A gamma of every sign in each block, and biases that matter."""
    generator = torch.Generator().manual_seed(seed)
    blocks = []
    for before, after in zip((channels, *widths), widths, strict=False):
        conv, norm = nn.Conv1d(before, after, kernel, stride).double(), nn.BatchNorm1d(after).double()
        for parameter in (conv.weight, conv.bias, norm.weight, norm.bias):
            nn.init.normal_(parameter, generator=generator)
        with torch.no_grad():
            norm.weight[0] = -norm.weight[0].abs()
            norm.weight[-1] = 0.0 if after > 2 else norm.weight[-1].abs()
        blocks.append((conv, norm))
    return blocks


def layers_of(blocks, device):
    """The same in float32, as the fused blocks take it."""
    return [layer_of(conv.float().to(device), norm.float().to(device)) for conv, norm in copy.deepcopy(blocks)]


def run_plain(signal, blocks, dropout=0.0, noise=None, seen=None):
    """The specification: modules of torch, one after the other, in float64, with dropout by given bits.

    seen: a list that gets the input and the output of every convolution.
    """
    features, start = signal, 0
    for conv, norm in blocks:
        raw = conv(features)  # (n, channel, position)
        if seen is not None:
            seen.append((features.detach(), raw))
            raw.retain_grad()
        features = nn.functional.max_pool1d(norm(raw).relu(), 2)  # (n, channel, sample)
        levels = round(dropout * LEVELS)
        if levels:
            n, channels, samples = features.shape
            drawn = noise[start : start + features.numel()].view(n, samples, channels).transpose(1, 2).long()
            features = features * (drawn + LEVELS // 2 >= levels) * (LEVELS / (LEVELS - levels))
            start += -(-features.numel() // 32) * 32
    return features


def bits(signal, blocks, stride, device):
    """Noise for all blocks, with as many draws just at and just below the threshold for 0.1 as there are others."""
    weights = [conv.weight for conv, _ in blocks]
    size = geometry.make_plan(signal, weights, stride, False).noise_size
    generator = torch.Generator().manual_seed(1)
    noise = torch.randint(-LEVELS // 2, LEVELS // 2, (size,), dtype=torch.int16, generator=generator)
    noise[::4] = round(0.1 * LEVELS) - LEVELS // 2
    noise[1::4] = round(0.1 * LEVELS) - LEVELS // 2 - 1
    return noise.to(device)


def agree(found, expected, tolerance=CLOSE, terms=0.0):
    """Within a share of the largest value; a sum may be small because large terms cancel, hence not below 0.1.

    terms: the largest sum of absolute terms, where it is known: 2e-6 of it is allowed too.
    """
    scale = max(0.1, expected.abs().max().item())
    torch.testing.assert_close(found.double().cpu(), expected, rtol=0, atol=max(tolerance * scale, 2e-6 * terms))


def compare(signal, blocks, stride, device, dropout=0.0, wants_signal=False, tolerance=CLOSE, weight=1.0):
    """Outputs, running statistics and every gradient of the fused blocks and of the plain ones, by weighted outputs."""
    layers = layers_of(blocks, device)
    noise = bits(signal, blocks, stride, device)
    given = signal.clone().to(device).requires_grad_(wants_signal)
    fused = fused_blocks(given, layers, stride=stride, dropout=dropout, noise=noise)
    exact = signal.double().requires_grad_(wants_signal)
    seen = []
    plain = run_plain(exact, blocks, dropout, noise.cpu(), seen)
    assert fused.shape == plain.shape
    agree(fused.detach(), plain.detach(), tolerance=tolerance)

    upstream = torch.randn(plain.shape, generator=torch.Generator().manual_seed(2)) * weight
    fused.backward(upstream.to(device))
    plain.backward(upstream.double())
    for layer, (conv, norm), (features, raw) in zip(layers, blocks, seen, strict=True):
        agree(layer.running_mean, norm.running_mean, tolerance=tolerance)
        agree(layer.running_var, norm.running_var, tolerance=tolerance)
        assert layer.batches.item() == 1
        assert layer.bias.grad.count_nonzero() == 0
        # A filter of one value before a norm has next to no gradient: terms of 89 leave 0.004 in "a kernel of one".
        terms = nn.grad.conv1d_weight(features.abs(), conv.weight.shape, raw.grad.abs(), conv.stride).max().item()
        agree(layer.weight.grad, conv.weight.grad, tolerance=10 * tolerance, terms=terms)
        for found, expected in ((layer.gamma, norm.weight), (layer.beta, norm.bias)):
            agree(found.grad, expected.grad, tolerance=10 * tolerance)
    if wants_signal:
        agree(given.grad, exact.grad, tolerance=10 * tolerance)


CASES = {
    # name: n, channels, samples, widths, kernel, stride, dropout, gradient of the signals
    "one block of the paper": (3, 1, 140, (4,), 7, 3, 0.1, False),
    "three blocks of the paper": (2, 1, 388, (4, 16, 32), 7, 3, 0.1, False),
    "an odd number of positions": (3, 1, 97, (4, 5), 5, 2, 0.0, False),
    "three leads, odd widths": (2, 3, 70, (5, 3), 7, 3, 0.1, True),
}
MORE = {
    "twelve leads": (2, 12, 40, (4,), 7, 3, 0.1, False),
    "a stride longer than the kernel": (3, 2, 90, (3, 4), 2, 4, 0.1, True),
    "an even number of positions": (3, 1, 95, (4, 5), 5, 2, 0.1, False),
    "with the gradient of the signals": (3, 1, 131, (4, 8), 7, 3, 0.1, True),
    "a kernel of one": (3, 1, 40, (3,), 1, 1, 0.0, True),
    "a long kernel": (2, 2, 40, (3,), 10, 1, 0.0, True),
    "a kernel of two strides": (3, 2, 44, (3, 3), 4, 2, 0.0, True),
    "a single channel": (4, 1, 60, (1, 1), 3, 2, 0.5, False),
    "a wide block": (2, 6, 60, (24, 40), 4, 2, 0.1, True),
}


@pytest.mark.parametrize(
    "case",
    [
        *(pytest.param(case, id=name) for name, case in CASES.items()),
        *(pytest.param(case, id=name, marks=pytest.mark.slow) for name, case in MORE.items()),
    ],
)
def test_the_blocks_are_those_of_the_plain_modules(case, device):
    """Output, running statistics and gradients, with gammas of every sign: nothing of a run may depend on the way."""
    n, channels, samples, widths, kernel, stride, dropout, wants_signal = case
    signal = torch.randn(n, channels, samples, generator=torch.Generator().manual_seed(3))
    blocks = make_blocks(channels, widths, kernel, stride)
    compare(signal, blocks, stride, device, dropout, wants_signal)


@pytest.mark.parametrize(
    "case",
    [
        *(pytest.param(case, id=name) for name, case in CASES.items()),
        *(pytest.param(case, id=name, marks=pytest.mark.slow) for name, case in MORE.items()),
    ],
)
def test_blocks_in_evaluation_are_those_of_the_plain_modules(case, device):
    """By running statistics that are not those of the signals; for one signal as for several."""
    n, channels, samples, widths, kernel, stride, _, _ = case
    generator = torch.Generator().manual_seed(3)
    signal = torch.randn(n, channels, samples, generator=generator)
    blocks = make_blocks(channels, widths, kernel, stride)
    for _, norm in blocks:
        norm.eval()
        norm.running_mean.normal_(generator=generator)
        norm.running_var.uniform_(0.1, 4, generator=generator)
    layers = layers_of(blocks, device)
    with torch.no_grad():
        expected = run_plain(signal.double(), blocks)
        found = evaluated_blocks(signal.to(device), layers, stride=stride)
        alone = evaluated_blocks(signal[:1].to(device), layers, stride=stride)
    agree(found, expected)
    agree(alone, expected[:1])
    for layer, (_, norm) in zip(layers, blocks, strict=True):
        agree(layer.running_mean, norm.running_mean)
        assert layer.batches.item() == 0


@pytest.mark.parametrize("wants_signal", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_first_of_equal_positions_is_pooled(wants_signal, device):
    """Flat stretches, such as a lead that is off: MaxPool1d takes the first, and so the gradient goes there."""
    generator = torch.Generator().manual_seed(4)
    signal = torch.randn(3, 1, 8, generator=generator).repeat_interleave(15, 2)  # (3, 1, 120), flat for 15 samples
    compare(signal, make_blocks(1, (4, 3), 3, 2), 2, device, wants_signal=wants_signal)


def test_a_large_mean_costs_no_digits(device):
    """Signals in a unit with an offset. The variance is summed around the mean, not as a difference of squares."""
    signal = torch.randn(3, 1, 120, generator=torch.Generator().manual_seed(5)) + 50
    compare(signal, make_blocks(1, (4,), 7, 3), 3, device, tolerance=1e-4)


@pytest.mark.parametrize("wants_signal", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_signals_and_gradients_may_lie_in_memory_as_they_like(wants_signal, device):
    """A slice of a transposed view, a signal repeated without a copy; and the gradient of a sum, one number for all."""
    signal = torch.randn(40, 2, 4, generator=torch.Generator().manual_seed(6)).to(device).permute(2, 1, 0)
    views = (signal[::2, :, 3:], signal[:1].expand(2, 2, 40))
    blocks = make_blocks(2, (3,), 3, 2)
    for view in views:
        results = []
        for one in (view, view.contiguous()):
            layers, leaf = layers_of(blocks, device), one.detach().requires_grad_(wants_signal)
            fused_blocks(leaf, layers, stride=2, dropout=0.0).sum().backward()
            results.append([layers[0].weight.grad, layers[0].beta.grad, *([leaf.grad] if wants_signal else [])])
        for found, expected in zip(*results, strict=True):
            assert torch.equal(found, expected)


@pytest.mark.slow
def test_the_same_input_gives_the_same_bits(device):
    """No sum is made in an order that can change, so a run can be repeated."""
    signal = torch.randn(4, 1, 80, generator=torch.Generator().manual_seed(7)).to(device)
    blocks = make_blocks(1, (4, 8), 5, 2)
    noise = bits(signal, blocks, 2, device)
    made = []
    for _ in range(2):
        layers = layers_of(blocks, device)
        output = fused_blocks(signal, layers, stride=2, dropout=0.1, noise=noise)
        output.square().sum().backward()
        made.append([output, *(parameter.grad for layer in layers for parameter in layer[:4])])
    assert all(torch.equal(*pair) for pair in zip(*made, strict=True))


def test_noise_is_drawn_from_torchs_generator_and_drops_the_share_that_was_asked_for(device):
    """`torch.manual_seed` repeats a run; two steps drop different features; without dropout nothing is drawn."""
    signal = torch.randn(8, 1, 90, generator=torch.Generator().manual_seed(8)).to(device)
    blocks = make_blocks(1, (4,), 3, 2)
    for _, norm in blocks:
        nn.init.ones_(norm.weight)
        nn.init.constant_(norm.bias, 9.0)  # nothing falls to the ReLU, so what is zero was dropped

    def run(dropout):
        return fused_blocks(signal, layers_of(blocks, device), stride=2, dropout=dropout)

    torch.manual_seed(0)
    first, second = run(0.25), run(0.25)
    share = (first == 0).double().mean().item()
    assert abs(share - 0.25) < 4 * (0.25 * 0.75 / first.numel()) ** 0.5
    assert not torch.equal(first == 0, second == 0)
    clean, kept = run(0.0), first != 0
    torch.testing.assert_close(first[kept], clean[kept] / 0.75)
    torch.manual_seed(0)
    run(0.0)
    assert torch.equal(run(0.25), first)


def test_a_nan_is_not_hidden_by_the_relu(device):
    """A broken signal must break the loss, so that it is noticed."""
    signal = torch.randn(2, 1, 40)
    signal[0, 0, 5] = float("nan")
    output = fused_blocks(signal.to(device), layers_of(make_blocks(1, (2,), 3, 2), device), stride=2, dropout=0.0)
    assert output.isnan().all()


@pytest.mark.parametrize(("n", "samples"), [(1, 3), (1, 4), (2, 4)])
def test_too_little_for_batchnorm_or_pooling_is_refused(n, samples, device):
    """As nn.BatchNorm1d refuses a single value and nn.MaxPool1d a single position, before a division by zero."""
    layers = layers_of(make_blocks(1, (2,), 3, 2), device)
    with pytest.raises(ValueError, match=rf"\({n}, 1, {samples}\). Use a larger batch or longer frames"):
        fused_blocks(torch.zeros(n, 1, samples, device=device), layers, stride=2, dropout=0.0)


def test_there_is_no_second_derivative_and_it_says_so(device):
    """Silence would be a wrong gradient penalty."""
    layers = layers_of(make_blocks(1, (2,), 3, 2), device)
    output = fused_blocks(torch.randn(2, 1, 40, device=device), layers, stride=2, dropout=0.0)
    (gradient,) = torch.autograd.grad(output.sum(), layers[0].weight, create_graph=True)
    with pytest.raises(RuntimeError, match=r"conv_blocks_backward has no gradient"):
        gradient.sum().backward()


def test_the_operator_keeps_torchs_contracts(device):
    """Nothing is changed behind torch's back, and shapes are known without values: torch.compile relies on both."""
    blocks = make_blocks(1, (3, 4), 3, 2)
    layers = layers_of(blocks, device)
    signal = torch.randn(2, 1, 30, device=device, requires_grad=True)
    lists = [[layer[field] for layer in layers] for field in range(4)]
    noise = bits(signal, blocks, 2, device)
    arguments = (signal, *lists, noise, 2, 0.1, 1e-5, True)
    checks = ("test_schema", "test_autograd_registration", "test_faketensor")
    torch.library.opcheck(torch.ops.clocs.conv_blocks.default, arguments, test_utils=checks)
    weights, _, gammas, betas = lists
    moments = torch.ones(sum(2 * len(gamma) + 1 for gamma in gammas), device=device)
    arguments = (signal, weights, gammas, betas, moments, 2, 1e-5)
    torch.library.opcheck(torch.ops.clocs.conv_blocks_evaluated.default, arguments, test_utils=checks)


@pytest.mark.slow
def test_a_step_can_be_compiled_in_one_graph(device):
    """Running statistics included: a graph break would cost more than the kernels save."""
    blocks = make_blocks(1, (4, 3), 3, 2)
    signal = torch.randn(3, 1, 60, generator=torch.Generator().manual_seed(9)).to(device)
    noise = bits(signal, blocks, 2, device)
    results = []
    for wrap in (lambda step: step, lambda step: torch.compile(step, fullgraph=True, backend="aot_eager")):
        layers = layers_of(blocks, device)

        @wrap
        def step(signal, layers=layers):
            return fused_blocks(signal, layers, stride=2, dropout=0.1, noise=noise).square().sum()

        step(signal).backward()
        results.append([*(part for layer in layers for part in layer[4:]), *(layer.weight.grad for layer in layers)])
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected)


@pytest.mark.cuda
@pytest.mark.filterwarnings("ignore:Synchronization debug mode")  # a prototype, it says
@pytest.mark.skipif(INTERPRETED, reason="a CUDA graph needs a GPU")
def test_a_step_can_be_captured_and_drops_other_features_each_time_it_is_replayed():
    """The whole step of the paper's encoder, without a host sync: other signals, other noise, the same kernels."""
    device = torch.device("cuda")
    blocks = make_blocks(1, (4, 16, 32), 7, 3)
    layers = layers_of(blocks, device)
    signal = torch.randn(64, 1, 2500, device=device)
    assert can_fuse(signal, [layer.weight for layer in layers], 3)

    def step():
        for layer in layers:
            for parameter in layer[:4]:
                parameter.grad = None
        output = fused_blocks(signal, layers, stride=3, dropout=0.1)
        output.square().mean().backward()
        return output

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step()  # compiles the kernels
        torch.cuda.set_sync_debug_mode("error")
        try:
            step()
        finally:
            torch.cuda.set_sync_debug_mode("default")
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = step()
    graph.replay()
    first, gradient = output.clone(), layers[0].weight.grad.clone()
    graph.replay()
    assert not torch.equal(first == 0, output == 0)
    signal.copy_(torch.randn_like(signal))
    graph.replay()
    assert not torch.equal(gradient, layers[0].weight.grad)
    assert output.isfinite().all()
    assert layers[0].batches.item() == 2 + 3


PAPER = {"first": (1, 2500, 4), "second": (4, 416, 16), "third": (16, 68, 32)}


@pytest.mark.cuda
@pytest.mark.skipif(INTERPRETED, reason="too large for the interpreter")
@pytest.mark.parametrize("block", PAPER)
def test_a_block_of_the_paper_at_its_own_size_is_that_of_the_plain_modules(block):
    """512 frames, with the tiles that are shipped; where no rounding makes another sample the largest of its pool."""
    before, samples, after = PAPER[block]
    signal = torch.randn(512, before, samples, generator=torch.Generator().manual_seed(10))
    blocks = make_blocks(before, (after,), 7, 3)
    conv, norm = copy.deepcopy(blocks[0])
    with torch.no_grad():
        pairs = norm(conv(signal.double()))[..., : (conv(signal.double()).shape[2] // 2) * 2].unflatten(2, (-1, 2))
    clear = ((pairs[..., 0] - pairs[..., 1]).abs() > 1e-3) & (pairs.amax(3).abs() > 1e-3)  # (n, after, pooled)
    assert 0.5 < clear.double().mean() < 1
    wants_signal = before > 1
    compare(signal, blocks, 3, torch.device("cuda"), 0.1, wants_signal, tolerance=1e-4, weight=clear.float())


@pytest.mark.cuda
@pytest.mark.skipif(INTERPRETED, reason="too large for the interpreter")
def test_the_papers_encoder_at_its_own_size_is_as_exact_as_the_plain_modules():
    """A rounding makes another sample the largest of its pool now and then, in the plain modules too."""
    signal = torch.rand(512, 1, 2500, generator=torch.Generator().manual_seed(10)).cuda()
    blocks = make_blocks(1, (4, 16, 32), 7, 3)
    upstream = torch.randn(512, 32, 10, generator=torch.Generator().manual_seed(2)).cuda()
    exact, plain = ([copy.deepcopy(pair) for pair in blocks] for _ in range(2))
    exact, plain = [[m.cuda() for m in pair] for pair in exact], [[m.float().cuda() for m in pair] for pair in plain]
    layers = layers_of(blocks, "cuda")
    run_plain(signal.double(), exact).backward(upstream.double())
    run_plain(signal, plain).backward(upstream)
    fused_blocks(signal, layers, stride=3, dropout=0.0).backward(upstream)
    for (conv, norm), (rounded, rounded_norm), layer in zip(exact, plain, layers, strict=True):
        for truth, torchs, ours in (
            (conv.weight, rounded.weight, layer.weight),
            (norm.weight, rounded_norm.weight, layer.gamma),
            (norm.bias, rounded_norm.bias, layer.beta),
        ):
            assert distance(ours, truth) <= distance(torchs, truth) + 1e-4


def distance(found, exact):
    """How far gradients are apart, as a share of the exact one's length."""
    return ((found.grad.double() - exact.grad).norm() / exact.grad.norm()).item()


def test_as_many_bits_are_drawn_as_there_are_levels():
    """All 65,536 of them, or the share that is dropped is not the one that was asked for."""
    torch.manual_seed(0)
    drawn = draw_noise(1 << 20, torch.device("cpu"))
    assert drawn.dtype == torch.int16
    assert (drawn.min(), drawn.max()) == (-LEVELS // 2, LEVELS // 2 - 1)


# -------------------------------------------------------------------------------------------- in processes of their own


@pytest.mark.skipif(INTERPRETED, reason="this is that run")
@pytest.mark.skipif(OLD, reason="the interpreter of triton before 3.7 does not know numpy 2.4: triton issue 9171")
@pytest.mark.slow
@pytest.mark.parametrize("chosen", ["not slow", "slow"])
def test_all_of_this_holds_by_the_interpreter(chosen):
    """The arithmetic of the kernels, where there is no GPU."""
    environment = {**os.environ, "TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", chosen, str(Path(__file__))]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


COMPILE = """
import re, subprocess, sys, tempfile
from pathlib import Path
import torch, triton
from torch import nn
from triton.backends.compiler import GPUTarget
from clocs_plugins.cnn import fused_backward, fused_forward, linear_kernels
from clocs_plugins.cnn.block_fused import evaluated_blocks, fused_blocks, layer_of
from clocs_plugins.cnn.linear_fused import fused_linear

class NoDriver:
    get_current_target = staticmethod(lambda: GPUTarget("cuda", int(sys.argv[1]), 32))
    get_current_device = staticmethod(lambda: 0)
    get_current_stream = staticmethod(lambda device=None: 0)

def compile_only(kernel, programs, *arguments, stages=1, **constants):
    made = kernel.warmup(*arguments, grid=(programs,), num_stages=stages, **constants)
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        Path(file.name).write_bytes(made.asm["cubin"])
        tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
        usage = subprocess.run([tool, "-res-usage", file.name], capture_output=True, text=True, check=True).stdout
    stack = int(re.search(r"STACK:(\\d+)", usage).group(1))
    print(kernel.fn.__name__, stack, made.metadata.shared)
    assert stack == 0, f"{kernel.fn.__name__} spills registers: {usage}"
    assert made.metadata.shared <= 99 * 1024, f"{kernel.fn.__name__} needs {made.metadata.shared} bytes"

triton.runtime.driver.set_active(NoDriver())
fused_forward.launch = fused_backward.launch = linear_kernels.launch = compile_only
widths = ((1, 4), (4, 16), (16, 32))
layers = [layer_of(nn.Conv1d(before, after, 7, 3), nn.BatchNorm1d(after)) for before, after in widths]
signal = torch.zeros(512, 1, 2500)
with torch.no_grad():
    evaluated_blocks(signal, layers, stride=3)
features = fused_blocks(signal, layers, stride=3, dropout=0.1).flatten(1)
fused_linear(features, nn.Parameter(torch.zeros(128, 320)), nn.Parameter(torch.zeros(128)), True).sum().backward()
"""


@pytest.mark.slow
@pytest.mark.skipif(INTERPRETED, reason="the interpreter compiles nothing")
@pytest.mark.parametrize("capability", [80, 90, 100])
def test_the_kernels_compile_without_spills(capability):
    """For an A100, an H100 or H200, and a B200, without any of them. 99 KiB is what every GPU from sm_80 on has."""
    command = [sys.executable, "-c", COMPILE, str(capability)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == 4 + 9 + 2
