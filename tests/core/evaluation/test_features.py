"""Representations of frames: frozen, in the order of the instances, and whatever the memory allows at a time."""

import attrs
import numpy as np
import pytest
import torch
from fake_frames import FRAME, fake_store
from fake_recordings import CHANNELS
from torch import nn

from clocs_core.contracts.records import Task
from clocs_core.data.store import list_instances
from clocs_core.errors import ClocsWarning
from clocs_core.evaluation import features
from clocs_core.evaluation.features import Features, add_rows, embed, pool_records
from clocs_core.evaluation.labelled_frames import take
from clocs_core.testing.threads import on_ranks
from clocs_core.train.normalise import leave, min_max


def two_patients(prepared, device="cpu"):
    where = torch.device(device)
    instances, _ = list_instances(prepared, frozenset({"p0", "p1"}), CHANNELS, 1, False, where)
    return fake_store(prepared, device=where), instances


def rows_of(label):
    numbers = np.arange(len(label))
    return Features(np.zeros((len(label), 3), dtype=np.float32), label.astype(np.int64), numbers, numbers)


class Short(nn.Module):
    """An encoder on a GPU that can hold so many frames at once."""

    def __init__(self, most):
        super().__init__()
        self.most, self.sizes = most, []
        self.linear = nn.Linear(FRAME, 4)

    def forward(self, signal):
        self.sizes.append(len(signal))
        if len(signal) > self.most:
            raise torch.OutOfMemoryError
        return self.linear(signal.flatten(1))


def test_embedding_moves_neither_batchnorm_nor_dropout_and_puts_the_mode_back(prepared):
    """The released code probes in train mode: its frozen body still changes, and two passes differ."""
    store, instances = two_patients(prepared)
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(FRAME, 4), nn.BatchNorm1d(4), nn.Dropout(0.5)).train()
    before = {name: tensor.clone() for name, tensor in encoder.state_dict().items()}
    first, second = (embed(encoder, store, instances, min_max, lambda done, total: None) for _ in range(2))
    np.testing.assert_array_equal(first.embedding, second.embedding)
    assert all(torch.equal(tensor, before[name]) for name, tensor in encoder.state_dict().items())
    assert encoder.training
    assert first.embedding.shape == (len(instances), 4)
    assert set(first.label) == {0, 1}


@pytest.mark.parametrize(("instances", "at_once"), [(5, 2), (3, 2), (2, 1)])
def test_processes_share_the_batches_and_each_gets_all_embeddings(prepared, instances, at_once, monkeypatch):
    """To the last bit. Of two batches, the third process has none: no encoder has to take an empty batch."""
    monkeypatch.setattr("clocs_core.evaluation.features._AT_ONCE", at_once)
    store, found = two_patients(prepared)
    some = take(found, torch.arange(instances))
    encoder = Short(most=2)
    alone = embed(encoder, store, some, min_max, lambda done, total: None)
    encoder.sizes.clear()
    several = on_ranks(3, lambda group: embed(encoder, store, some, min_max, lambda done, total: None, group))
    for one in several:
        for mine, right in zip(attrs.astuple(one), attrs.astuple(alone), strict=True):
            np.testing.assert_array_equal(mine, right)
    assert sorted(encoder.sizes) == {5: [1, 2, 2], 3: [1, 1, 2], 2: [1, 1, 1]}[instances]


def test_frames_are_normalised_where_asked_and_left_alone_where_not(prepared):
    """An encoder that was trained on one of the two gives numbers for the other as well."""
    store, instances = two_patients(prepared)
    plain, scaled = (
        embed(nn.Flatten(), store, instances, normalise, lambda done, total: None).embedding
        for normalise in (leave, min_max)
    )
    first = store.gather(instances, torch.tensor([0])).signal.flatten()
    np.testing.assert_array_equal(plain[0], first)
    np.testing.assert_allclose(scaled[0], (first - first.min()) / (first.max() - first.min()), atol=1e-6)
    assert plain.min() < -1
    assert (scaled.min(), scaled.max()) == (0, pytest.approx(1))


def test_a_row_without_a_label_has_minus_one(prepared):
    """Zero is a class, and for a task of any classes it says that none holds."""
    instances, _ = list_instances(prepared, frozenset({"p0", "p1"}), CHANNELS, 1, False, torch.device("cpu"))
    labels = {record: None if record == "r0-0" else frozenset({2}) for record, _ in prepared.records}
    task = Task("kind", classes=("a", "b", "c"), kind="any_of")
    store = fake_store(prepared, task=task, labels=labels)
    found = embed(nn.Flatten(), store, instances, leave, lambda done, total: None)
    missing = np.array([store.records[number] == "r0-0" for number in found.record])
    assert 0 < missing.sum() < len(missing)
    assert (found.label[missing] == -1).all()
    assert (found.label[~missing] == [0, 0, 1]).all()


@pytest.mark.parametrize("most", [1, 7, 1000])
def test_where_memory_is_short_fewer_frames_are_embedded_at_a_time(prepared, most):
    """Hours of training must not be lost to an evaluation that wants more at once; rows keep their order."""
    store, instances = two_patients(prepared)
    torch.manual_seed(0)
    encoder = Short(most)
    found = embed(encoder, store, instances, leave, lambda done, total: None)
    signal = torch.cat([store.gather(instances, torch.tensor([row])).signal[:, 0] for row in range(len(instances))])
    np.testing.assert_allclose(found.embedding, encoder.linear(signal.flatten(1)).detach(), rtol=1e-5, atol=1e-6)
    assert (len(encoder.sizes) == 1) == (most == 1000)


def test_a_frame_that_does_not_fit_by_itself_is_an_error(prepared):
    store, instances = two_patients(prepared)
    with pytest.raises(torch.OutOfMemoryError):
        embed(Short(0), store, instances, leave, lambda done, total: None)


def test_on_the_cpu_an_encoder_gives_what_it_gives_elsewhere(prepared):
    """For frames that do not fit on a GPU by themselves. Its own weights stay where they are."""
    store, instances = two_patients(prepared)
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(FRAME, 4), nn.BatchNorm1d(4)).eval()
    before = [one.data_ptr() for one in encoder.parameters()]
    rows = torch.arange(3)
    found = features._embed_on_cpu(encoder, store, instances, min_max, rows)
    batch = store.gather(instances, rows)
    assert torch.equal(found[0], encoder(min_max(batch.signal[:, 0])))
    assert torch.equal(found[2], batch.patient)
    assert [one.data_ptr() for one in encoder.parameters()] == before


@pytest.mark.cuda
def test_a_frame_that_does_not_fit_on_a_gpu_is_embedded_on_the_cpu(prepared):
    store, instances = two_patients(prepared, "cuda")

    class Small(nn.Linear):
        def forward(self, signal):
            if signal.is_cuda:
                raise torch.OutOfMemoryError
            return super().forward(signal.flatten(1))

    encoder = Small(FRAME, 4).cuda()
    with pytest.warns(ClocsWarning, match="what does not fit is computed on the CPU"):
        found = embed(encoder, store, instances, leave, lambda done, total: None)
    signal = torch.cat(
        [store.gather(instances, torch.tensor([row]).cuda()).signal[:, 0] for row in range(len(instances))]
    )
    expected = nn.functional.linear(signal.flatten(1), encoder.weight, encoder.bias).detach().cpu()
    np.testing.assert_allclose(found.embedding, expected, rtol=1e-4, atol=1e-5)


def test_a_recording_has_the_mean_of_its_embeddings_and_the_label_of_its_rows():
    ids = {"label": np.array([1, 0, 1]), "patient": np.array([7, 8, 7]), "record": np.array([4, 2, 4])}
    found = pool_records(Features(np.array([[1.0, 2.0], [5.0, 5.0], [3.0, 4.0]], np.float32), **ids))
    assert found.embedding.tolist() == [[5.0, 5.0], [2.0, 3.0]]
    assert (found.label.tolist(), found.patient.tolist(), found.record.tolist()) == ([0, 1], [8, 7], [2, 4])
    assert pool_records(Features(np.empty((3, 0), np.float32), **ids)).label.tolist() == [0, 1]


@pytest.mark.parametrize("rows", [1, 7, 4000])
def test_sums_of_rows_have_the_bits_of_a_loop(rows):
    rng = np.random.default_rng(rows)
    values, number = rng.normal(size=(rows, 5)).astype(np.float32) ** 9, rng.integers(0, 6, rows)
    expected = np.zeros((6, 5))
    for row, group in zip(values, number, strict=True):
        expected[group] += row
    np.testing.assert_array_equal(add_rows(values, number, 6), expected)
