"""Where the time of a step goes."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from torch.autograd.profiler_util import Interval

from clocs_core.cli import main
from clocs_core.train.profiling import STEPS, StepProfiler, covered, gpu_profile, kernel_name
from clocs_core.train.validation import validate

pytestmark = pytest.mark.usefixtures("no_pictures")  # no test here looks at them

CPU = torch.device("cpu")


def products(ticks, total, size=400):
    """What runs an epoch of matrix products: none is learnt, and the ticks come as they are given."""
    matrix = torch.randn(size, size)

    def run_epoch(learner, training, epoch, tick):
        done = 0
        for now in ticks:
            for _ in range(now - done):
                matrix @ matrix
            done = now
            tick(now, total)
        return torch.zeros(total)

    return run_epoch


def marks_of(folder):
    (trace,) = folder.glob("*.pt.trace.json")
    return {event["name"] for event in json.loads(trace.read_text())["traceEvents"] if "ProfilerStep" in event["name"]}


def test_the_shares_of_a_step_add_up_and_name_what_takes_most(tmp_path):
    seen, profiler = [], StepProfiler(tmp_path / "profile", CPU)
    epoch = profiler.watch(products(range(1, 20), 19))
    assert epoch(None, None, 1, lambda done, steps: seen.append((done, steps))).shape == (19,)
    assert seen == [(done, 19) for done in range(1, 20)]
    assert profiler.found.steps == STEPS
    assert sum(row.share for row in profiler.found.shares) == pytest.approx(1.0)
    assert sum(row.milliseconds for row in profiler.found.shares) == pytest.approx(profiler.found.milliseconds)
    assert profiler.found.shares[0].name == "aten::mm"
    assert len(marks_of(tmp_path / "profile")) == STEPS


def test_a_profiled_run_validates_as_it_would_without_a_profile(tmp_path):
    """Captured validation must not become plain by a flag that only looks on."""

    class Epochs:
        def __call__(self, *_): ...

        def validate(self, *arguments):
            return arguments

    watched = StepProfiler(tmp_path, CPU).watch(Epochs())
    assert validate(watched, "learner", "training", True) == ("learner", "training", True)


@pytest.mark.parametrize(
    ("ticks", "total", "first", "second"),
    [
        (range(1, 8), 7, 4, 4),  # the rest of a short epoch
        (range(1, 4), 3, None, 3),  # an epoch that is all warming up: the next one, from its beginning
        ((10, 20, 30, 31), 31, 10, 10),  # several steps between two ticks, as captured steps have them
        ((10,), 10, None, 10),
        ((10, 11, 12), 12, 2, 2),
    ],
)
def test_steps_of_one_epoch_are_profiled(tmp_path, ticks, total, first, second):
    """Never the validation between two of them; and an epoch that follows is not profiled again."""
    profiler = StepProfiler(tmp_path / "profile", CPU)
    epoch = profiler.watch(products(ticks, total, size=4))
    for number, expected in ((1, first), (2, second), (3, second)):
        epoch(None, None, number, lambda *_: None)
        torch.randn(8, 8).svd()
        assert (profiler.found and profiler.found.steps) == expected
    assert not any("svd" in row.name for row in profiler.found.shares)
    assert len(list((tmp_path / "profile").iterdir())) == 1


def test_a_step_that_fails_under_the_profiler_fails_as_it_would_without(tmp_path):
    """And the process can profile again."""

    def breaks(learner, training, epoch, tick):
        for done in range(1, 8):
            tick(done, 9)
        raise ZeroDivisionError

    profiler = StepProfiler(tmp_path / "profile", CPU)
    with pytest.raises(ZeroDivisionError):
        profiler.watch(breaks)(None, None, 1, lambda *_: None)
    assert profiler.found is None
    profiler.watch(products(range(1, 8), 7, size=4))(None, None, 1, lambda *_: None)
    assert profiler.found.steps == 7


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<long>>(int)", None),
        ("void at::native::(anonymous namespace)::indexSelectSmallIndex<long, long>(long)", "indexSelectSmallIndex"),
        ("tile_kernel", "tile_kernel"),
        ("Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD"),
    ],
)
def test_names_of_kernels_lose_their_types(name, short):
    assert kernel_name(name).removeprefix("at::native::") == (short or "vectorized_elementwise_kernel")


def seen_on_gpu(*spans):
    """What torch's profiler has seen: (name, start, end) in microseconds, on the device."""
    events = [
        SimpleNamespace(name=name, device_type=SimpleNamespace(name="CUDA"), time_range=Interval(start, end))
        for name, start, end in spans
    ]
    host = SimpleNamespace(name="aten::mm", device_type=SimpleNamespace(name="CPU"), time_range=Interval(0, 9000))
    return SimpleNamespace(events=lambda: [*events, host])


def test_a_step_on_a_gpu_is_its_kernels_without_marks_and_host():
    seen = seen_on_gpu(
        ("void tile_kernel<4>(float*)", 1000, 3000),
        ("void tile_kernel<2>(float*)", 2000, 4000),
        ("add_kernel", 8000, 9000),
        ("ProfilerStep*", 0, 20000),
        ("Optimizer.step#Adam.step", 0, 20000),
    )
    found = gpu_profile(seen, 2)
    assert (found.steps, found.milliseconds, found.gpu_busy) == (2, 4.0, 2.0)
    assert [(row.name, row.milliseconds) for row in found.shares[:2]] == [("tile_kernel", 2.0), ("add_kernel", 0.5)]


def test_where_no_kernel_is_shown_there_is_no_table():
    found = gpu_profile(seen_on_gpu(("ProfilerStep*", 0, 20000)), 2)
    assert (found.gpu_busy, found.shares) == (0.0, ())


def test_kernels_that_overlap_are_busy_once():
    assert covered([(5.0, 7.0), (0.0, 2.0), (1.0, 3.0), (1.5, 2.5)]) == 5.0
    assert covered([]) == 0.0


@pytest.mark.cuda
@pytest.mark.parametrize("step", ["plain", "captured"])
def test_a_run_on_a_gpu_shows_its_kernels_and_nothing_of_the_validation(tmp_path, capsys, step):
    small = ("--plugin", "cmsc", "--dataset", "demo", "--epochs", "2", "--batch-size", "64", "-o", "resamples=10")
    where = ("--out", str(tmp_path / "run"), "--data-root", str(tmp_path / "data"), "--device", "cuda")
    assert main(["run", *small, *where, "--step", step, "--profile"]) == 0
    shown = " ".join(capsys.readouterr().err.split())
    lasts, busy = re.search(r"a step lasts ([\d.]+) ms, and the GPU is busy for ([\d.]+) of them", shown).groups()
    assert 0 < float(busy) <= float(lasts) < 100
    assert "differentiate_kernel" in shown
    assert "svd" not in shown
    assert "ProfilerStep" not in shown


@pytest.mark.slow
def test_a_run_can_be_profiled_and_ends_as_one_that_was_not(tmp_path, capsys):
    """Looking must not change what is seen: the same weights come out."""
    small = ("--plugin", "cmsc", "--dataset", "demo", "-o", "patients=30", "--epochs", "4", "--batch-size", "16")
    weights = []
    for name, more in (("plain", ()), ("profiled", ("--profile",))):
        where = ("--out", str(tmp_path / name), "--data-root", str(tmp_path / "data"), "-o", "resamples=10")
        assert main(["run", *small, *where, *more]) == 0
        weights.append(load_file(tmp_path / name / "encoder.safetensors"))
    assert weights[0].keys() == weights[1].keys()
    assert all(np.array_equal(tensor, weights[1][key]) for key, tensor in weights[0].items())
    shown = " ".join(capsys.readouterr().err.split())
    assert "a step takes" in shown
    assert "everything else" in shown
    assert list((tmp_path / "profiled" / "profile").glob("*.pt.trace.json"))


def test_a_run_of_few_steps_says_that_there_was_nothing_to_profile(tmp_path, capsys):
    small = ("--plugin", "cmsc", "--dataset", "demo", "-o", "patients=12", "--epochs", "1", "-o", "resamples=10")
    where = ("--out", str(tmp_path / "run"), "--data-root", str(tmp_path / "data"))
    assert main(["run", *small, *where, "--profile"]) == 0
    assert "too few steps to profile" in " ".join(capsys.readouterr().err.split())
