"""Tensors and their description in one file: the same from bytes and from a file, and refused where damaged."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest
import torch
from safetensors.torch import save

from clocs_core.artifacts.tensors import (
    pack_tensors,
    read_description,
    read_tensors,
    refuse_other_schema,
    save_tensors,
)
from clocs_core.errors import RunFolderError
from clocs_core.settings.toml_file import SCHEMA

TENSORS = {"w": torch.tensor([[1.5, -2.0], [0.25, 8.0]]), "n": torch.tensor([3], dtype=torch.int64)}
ABOUT = {"schema": SCHEMA, "name": "Lüneburg", "list": [1, 2.5, None]}


def test_bytes_and_a_file_read_alike(tmp_path):
    save_tensors(TENSORS, ABOUT, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == pack_tensors(TENSORS, ABOUT)
    for source in (tmp_path / "file", pack_tensors(TENSORS, ABOUT)):
        found, about = read_tensors(source)
        assert about == ABOUT
        assert found.keys() == TENSORS.keys()
        for name, tensor in TENSORS.items():
            assert torch.equal(found[name], tensor)
            assert found[name].dtype == tensor.dtype
    assert read_description(tmp_path / "file") == ABOUT


def test_tensors_that_share_memory_or_hold_a_gradient_can_be_written():
    """Tied weights and parameters of a model in training: safetensors alone refuses the first."""
    weight = torch.arange(4.0, requires_grad=True)
    found, _ = read_tensors(pack_tensors({"a": weight, "b": weight, "c": weight.view(2, 2).T}, {}))
    assert torch.equal(found["a"], found["b"])
    assert found["c"].tolist() == [[0.0, 2.0], [1.0, 3.0]]
    assert not found["a"].requires_grad


def without_description():
    return save(TENSORS)


def with_broken_description():
    return save(TENSORS, {"clocs": "{"})


DAMAGED = [b"", b"half", pack_tensors(TENSORS, ABOUT)[:-1], with_broken_description()]


@pytest.mark.parametrize("data", DAMAGED, ids=["empty", "another file", "cut short", "broken description"])
def test_a_damaged_file_is_refused_by_its_name(tmp_path, data):
    (tmp_path / "file").write_bytes(data)
    for read in (read_tensors, read_description):
        with pytest.raises(RunFolderError, match=r"^Cannot read .*file: "):
            read(tmp_path / "file")


def test_a_file_that_is_not_there_is_refused_by_its_name(tmp_path):
    with pytest.raises(RunFolderError, match="gone"):
        read_tensors(tmp_path / "gone")


@pytest.mark.parametrize("data", [without_description(), save(TENSORS, {"clocs": json.dumps([1])})])
def test_a_file_of_somebody_else_has_an_empty_description(tmp_path, data):
    (tmp_path / "file").write_bytes(data)
    assert read_tensors(tmp_path / "file")[1] == {}


def test_no_flipped_bit_goes_unnoticed():
    """Other weights would give other scores without a word."""
    whole = pack_tensors(TENSORS, ABOUT)
    for place in range(len(whole)):
        for bit in range(8):
            damaged = whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :]
            with pytest.raises(RunFolderError):
                refuse_other_schema(read_tensors(damaged)[1], Path("some.file"), "encoder")  # as every loader does


def test_the_checksum_is_that_of_the_file_with_zeros_in_its_place():
    """As the pages say, so that another program can check it."""
    whole = pack_tensors(TENSORS, ABOUT)
    length = int.from_bytes(whole[:8], "little")
    about = json.loads(json.loads(whole[8 : 8 + length])["__metadata__"]["clocs"])
    assert list(about)[:2] == ["format", "sha256"]
    assert sha256(whole.replace(about["sha256"].encode(), b"0" * 64)).hexdigest() == about["sha256"]


def test_a_description_that_looks_like_the_checksum_is_left_alone():
    about = {"schema": SCHEMA, "hash": "0" * 64, "nested": {"sha256": "0" * 64}}
    assert read_tensors(pack_tensors(TENSORS, about))[1] == about


def test_a_file_of_before_the_checksum_is_read_without():
    tensors, about = read_tensors(save(TENSORS, {"clocs": json.dumps(ABOUT)}))
    assert about == ABOUT
    assert torch.equal(tensors["w"], TENSORS["w"])


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"format": 2}, "its format is 2 and its checksum None, expected 2 and 64 digits"),
        ({"sha256": "0" * 64}, "its format is None"),
        ({"format": 2, "sha256": "abc"}, "its checksum 'abc'"),
        ({"format": 2, "sha256": "0" * 64}, "its checksum does not match: it was damaged or changed"),
    ],
)
def test_a_file_that_should_have_a_checksum_is_refused_without_one(tmp_path, more, why):
    (tmp_path / "file").write_bytes(save(TENSORS, {"clocs": json.dumps({**more, **ABOUT})}))
    with pytest.raises(RunFolderError, match=why):
        read_tensors(tmp_path / "file")


def test_a_file_of_a_later_format_is_refused(monkeypatch):
    monkeypatch.setattr("clocs_core.artifacts.tensors.FORMAT", 3)
    later = pack_tensors(TENSORS, ABOUT)
    monkeypatch.undo()
    with pytest.raises(RunFolderError, match="it has format 3, this version of clocs reads 2"):
        read_tensors(later)


@pytest.mark.parametrize(
    ("about", "why"),
    [
        ({"schema": True}, "schema True, this one reads"),
        ({"schema": SCHEMA + 1}, rf"schema {SCHEMA + 1}, this one reads {SCHEMA}\.$"),
        ({"schema": None}, "schema None, this one reads"),
        ({}, r"it says nothing of itself\.$"),
    ],
)
def test_a_file_of_another_schema_is_refused_with_both_schemas(about, why):
    with pytest.raises(RunFolderError, match=f"^some.file holds no encoder of this version of clocs: {why}"):
        refuse_other_schema(about, Path("some.file"), "encoder")


def test_a_file_of_this_schema_is_not_refused():
    refuse_other_schema({"schema": SCHEMA}, Path("some.file"), "encoder")


@pytest.mark.parametrize("damaged", [b"", b"not a file", b"\xff" * 100], ids=["empty", "text", "length"])
def test_bytes_that_are_no_file_are_a_sentence(damaged: bytes) -> None:
    with pytest.raises(RunFolderError, match="The bytes are no file of clocs"):
        read_tensors(damaged)


def test_tensors_of_every_type_and_shape_are_packed_as_safetensors_packs_them() -> None:
    """Values that NumPy has a type for take another way to the same bytes."""
    shared = torch.arange(6.0).view(2, 3)
    known = {
        "b": shared,
        "a": shared.T,  # the same memory, in another order
        "number": torch.tensor(3),
        "flags": torch.tensor([True, False]),
        "none": torch.zeros(0, 4),
        "half": torch.ones(3, dtype=torch.float16),
        "weight": torch.nn.Parameter(torch.ones(2)),
    }
    for tensors in (known, {**known, "short": torch.ones(2, dtype=torch.bfloat16)}):
        found, about = read_tensors(pack_tensors(tensors, {"what": 1}))
        assert about["what"] == 1
        assert {name: (one.dtype, one.tolist()) for name, one in found.items()} == {
            name: (one.dtype, one.tolist()) for name, one in tensors.items()
        }
        plain = {name: one.detach().contiguous().clone() for name, one in tensors.items()}
        assert pack_tensors(tensors, {})[-40:] == save(plain)[-40:]
