"""Frames are compared with those of TensorBoard's own writer, byte by byte."""

from __future__ import annotations

from io import BytesIO

from hypothesis import given
from hypothesis import strategies as st
from tensorboard.summary.writer.record_writer import RecordWriter

from clocs_plugins.tensorboard.records import frame_records


@given(st.lists(st.binary(max_size=300), max_size=5))
def test_records_are_framed_as_tensorboard_frames_them(records):
    expected = BytesIO()
    writer = RecordWriter(expected)
    for record in records:
        writer.write(record)
    assert frame_records(records) == expected.getvalue()
