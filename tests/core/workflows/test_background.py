from __future__ import annotations

import sys
from threading import Event
from types import ModuleType

import pytest
import torch

from clocs_core.workflows import background
from clocs_core.workflows.background import import_triton, load_gpu_libraries


@pytest.fixture(autouse=True)
def first_time() -> None:
    load_gpu_libraries.cache_clear()
    import_triton.cache_clear()


@pytest.mark.parametrize("there", [True, False], ids=["as in 3.6", "in a Triton that has it elsewhere"])
def test_triton_reads_its_files_beside_the_preparation(monkeypatch: pytest.MonkeyPatch, there: bool) -> None:
    asked: list[str] = []
    cache = ModuleType("triton.runtime.cache")
    if there:
        cache.triton_key = lambda: asked.append("key")  # type: ignore[attr-defined]
    for name in ("triton", "triton.runtime"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "triton.runtime.cache", cache)
    assert load_gpu_libraries(torch.device("cpu")) is None
    thread = load_gpu_libraries(torch.device("cuda"))
    assert thread is not None
    thread.join()
    assert asked == ["key"] * there


def test_triton_is_imported_by_one_thread_and_the_others_wait_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where two imported it at the same time, one of them found a module without its names, and the run failed."""
    began, go_on = Event(), Event()
    asked: list[str] = []

    def record(name: str) -> ModuleType:
        asked.append(name)
        if name == "triton":
            began.set()
            assert go_on.wait(60)
            asked.append("done")
        return ModuleType(name)

    monkeypatch.setattr(background, "import_module", record)
    loading, importing = load_gpu_libraries(torch.device("cuda")), import_triton(torch.device("cuda"))
    assert loading is not None
    assert importing is not None
    assert began.wait(60)
    loading.join(0.2)
    assert asked == ["triton"]
    go_on.set()
    importing.join()
    loading.join()
    assert asked == ["triton", "done", "triton.runtime.cache"]
    assert import_triton(torch.device("cpu")) is None
