"""A file that is not one of ours is called by what it is."""

from __future__ import annotations

import io
import pickle

import numpy as np
import pytest

from clocs_core.artifacts.file_kinds import kind_of_bytes, kind_of_file
from clocs_core.artifacts.tensors import read_description, read_tensors
from clocs_core.errors import RunFolderError


def archive() -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, x=np.zeros(3))
    return buffer.getvalue()


FILES = {
    "an empty file": b"",
    "a zip archive": archive(),
    "an ONNX file": b"\x08\x08\x12\x07pytorch\x1a\x052.4.0:\xd4\x13" + bytes(300),
    "a pickle": pickle.dumps({"weights": 1}),
    "text": "a table, with Lüneburg\n".encode() * 20,
}


@pytest.mark.parametrize(("kind", "content"), FILES.items())
def test_a_file_in_the_place_of_an_encoder_is_called_by_what_it_is(tmp_path, kind, content):
    """ "Error while deserializing header" tells nobody that the exported .onnx was given instead of the encoder."""
    path = tmp_path / "given"
    path.write_bytes(content)
    for read in (read_tensors, read_description):
        with pytest.raises(RunFolderError, match=rf"^Cannot read .*given: it is {kind}.*, not a safetensors file\."):
            read(path)


def test_a_folder_is_called_a_folder(tmp_path):
    with pytest.raises(RunFolderError, match="it is a folder, not a safetensors file"):
        read_tensors(tmp_path)
    assert kind_of_file(tmp_path / "gone") == ""


def test_bytes_that_tell_nothing_are_called_nothing():
    assert kind_of_bytes(b"\x01\x02\xff\xfe" * 20) == ""
    assert kind_of_bytes(b"\x80\x01\0\0\0\0\0\0{}") == ""  # a safetensors file with the first byte of a pickle
