"""Work that does not fit on a GPU is done in smaller pieces, then on the CPU, with one warning."""

from __future__ import annotations

import pytest
import torch

from clocs_core.data.memory import physical_memory, within_memory
from clocs_core.errors import ClocsWarning
from clocs_core.progress import collect_warnings

GPU, CPU = torch.device("cuda"), torch.device("cpu")


def work_that_fits(share_that_fits: float, asked: list[tuple[str, float]]):  # type: ignore[no-untyped-def]
    def work(device: torch.device, share: float) -> str:
        asked.append((device.type, share))
        if device.type == "cuda" and share > share_that_fits:
            raise torch.OutOfMemoryError
        return device.type

    return work


def test_smaller_pieces_are_tried_before_the_cpu() -> None:
    asked: list[tuple[str, float]] = []
    assert within_memory(work_that_fits(0.2, asked), GPU) == "cuda"
    assert asked == [("cuda", 1.0), ("cuda", 0.125)]


@pytest.mark.filterwarnings("default")
def test_the_cpu_computes_in_the_end_and_a_workflow_hears_it_once() -> None:
    with pytest.warns(ClocsWarning, match=r"memory of cuda does not suffice .* on the CPU"):
        assert within_memory(work_that_fits(0.0, []), GPU) == "cpu"
    with collect_warnings(lambda text: None) as heard:
        for _ in range(3):
            within_memory(work_that_fits(0.0, []), GPU)
    assert len(heard) == 1


def test_the_cpu_is_asked_once_and_other_errors_are_not_hidden() -> None:
    asked: list[tuple[str, float]] = []
    assert within_memory(work_that_fits(0.0, asked), CPU) == "cpu"
    assert asked == [("cpu", 1.0)]

    def broken(device: torch.device, share: float) -> str:
        raise RuntimeError("a shape")

    with pytest.raises(RuntimeError, match="a shape"):
        within_memory(broken, GPU)


def test_a_system_that_does_not_say_its_memory_sets_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("os.sysconf")
    assert physical_memory() == float("inf")
