"""Make values of an event from a number, a text, a picture or a layout of charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tensorboard.compat.proto.summary_pb2 import DATA_CLASS_TENSOR, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.types_pb2 import DT_STRING
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.custom_scalar import metadata as custom_scalar
from tensorboard.plugins.text import metadata as text_plugin

if TYPE_CHECKING:
    from clocs_core import Picture


def scalar(tag: str, value: float) -> Summary.Value:
    """Make a point of a curve."""
    return Summary.Value(tag=tag, simple_value=value)


def text(tag: str, markdown: str) -> Summary.Value:
    """Make a card with text."""
    about = text_plugin.create_summary_metadata(display_name=tag, description="")
    return _string(tag, markdown.encode("utf-8"), about)


def image(picture: Picture) -> Summary.Value:
    """Make an image from a PNG; read its width and height from the PNG's header."""
    width, height = (int.from_bytes(picture.png[at : at + 4], "big") for at in (16, 20))
    encoded = Summary.Image(width=width, height=height, colorspace=3, encoded_image_string=picture.png)
    about = SummaryMetadata(display_name=picture.title, summary_description=picture.caption)
    return Summary.Value(tag=f"report/{picture.name}", image=encoded, metadata=about)


def layout(charts: Mapping[str, Mapping[str, Sequence[str]]]) -> Summary.Value:
    """Group curves into charts, given as {category: {title of the chart: regular expressions of tags}}."""
    categories = [
        layout_pb2.Category(title=category, chart=[_chart(title, tags) for title, tags in members.items()])
        for category, members in charts.items()
    ]
    written = layout_pb2.Layout(category=categories).SerializeToString()
    return _string(custom_scalar.CONFIG_SUMMARY_TAG, written, custom_scalar.create_summary_metadata())


def _chart(title: str, tags: Sequence[str]) -> layout_pb2.Chart:
    return layout_pb2.Chart(title=title, multiline=layout_pb2.MultilineChartContent(tag=tags))


def _string(tag: str, content: bytes, about: SummaryMetadata) -> Summary.Value:
    about.data_class = DATA_CLASS_TENSOR
    return Summary.Value(tag=tag, metadata=about, tensor=TensorProto(dtype=DT_STRING, string_val=[content]))
