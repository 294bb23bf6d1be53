"""A run on a GPU: the same story, the store on the device."""

import json

import pytest
import torch
from fake_frames import TASK
from fake_recordings import CHANNELS, fake_entries

from clocs_core.cli import main
from clocs_core.data.store import fill_store, list_instances

pytestmark = pytest.mark.cuda


def test_a_run_on_a_gpu_ends_with_a_report_of_that_gpu(tmp_path):
    small = ("-o", "patients=24", "--epochs", "3", "--batch-size", "32", "-o", "resamples=20")
    where = ("--device", "cuda", "--data-root", str(tmp_path / "data"), "--out", str(tmp_path / "run"))
    assert main(["run", "--plugin", "cmsc", "--dataset", "demo", *small, *where]) == 0
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert report["environment"]["device"] == torch.cuda.get_device_name()
    assert all(0 <= score["value"] <= 1 for score in report["scores"])


def test_a_batch_that_the_gpu_cannot_hold_ends_with_the_one_to_try(tmp_path, capsys):
    """The run itself in a third of the memory that it took: captured, where the shortage comes while capturing."""
    small = ("run", "--plugin", "cmsc", "--dataset", "demo", "--epochs", "1", "-o", "resamples=10", "--device", "cuda")
    small = (*small, "--batch-size", "800", "--data-root", str(tmp_path / "data"))
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    assert main([*small, "--out", str(tmp_path / "whole")]) == 0
    third = torch.cuda.max_memory_reserved() / 3
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(third / torch.cuda.get_device_properties(0).total_memory)
    try:
        assert main([*small, "--out", str(tmp_path / "refused")]) != 0
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    said = " ".join(capsys.readouterr().err.split())
    assert "too little memory for batches of 800 instances. Try `--batch-size 400`" in said
    assert "with `--contrast-batch 800` beside it, as many instances are contrasted as before" in said


def test_the_store_lies_on_the_device_and_gathers_the_same_batch_as_on_the_host(prepared):
    labels = {entry.record: entry.label for entry in fake_entries()}
    batches = []
    for name in ("cpu", "cuda"):
        device = torch.device(name)
        store = fill_store(prepared, labels, TASK, CHANNELS[::-1], device)
        assert store.signal.device.type == name
        everyone = frozenset(f"p{number}" for number in range(6))
        instances, _ = list_instances(prepared, everyone, CHANNELS[::-1], 2, False, device)
        batches.append(store.gather(instances, torch.arange(len(instances), device=device)))
    host, device = batches
    for field in ("signal", "patient", "record", "segment", "channel", "label"):
        assert torch.equal(getattr(host, field), getattr(device, field).cpu())


@pytest.mark.parametrize("pinned", [True, False])
def test_a_store_too_large_for_the_device_stays_on_the_host(prepared, monkeypatch, pinned):
    """In pinned memory, or in the map of the file. The gather is then made on the host, and the batch travels."""
    monkeypatch.setattr("clocs_core.data.store._SHARE_OF_DEVICE", 0.0)
    if not pinned:
        monkeypatch.setattr("clocs_core.data.store._SHARE_OF_HOST", 0.0)
    labels = {entry.record: entry.label for entry in fake_entries()}
    device = torch.device("cuda")
    store = fill_store(prepared, labels, TASK, CHANNELS, device)
    assert store.signal.is_pinned() == pinned
    instances, _ = list_instances(prepared, frozenset({"p0"}), CHANNELS, 2, True, device)
    batch = store.gather(instances, torch.arange(len(instances), device=device))
    assert batch.signal.is_cuda
    expected = torch.from_numpy(prepared.frames[:2].copy())  # (segment, channel, sample)
    assert torch.equal(batch.signal[0].cpu(), expected)
