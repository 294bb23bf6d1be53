"""Tensors and their description in one file: the same from bytes and from a file, and refused where damaged."""

from __future__ import annotations

import json
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


@pytest.mark.parametrize(
    ("about", "why"),
    [
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
