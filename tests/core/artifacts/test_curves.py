"""The curve of fine-tuning as a file: it reads back to the last bit, and a damaged one is named."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clocs_core.artifacts.curves import CurvePoint, read_curve, save_curve
from clocs_core.errors import RunFolderError

NUMBERS = st.floats(allow_nan=True, allow_infinity=True)
POINTS = st.builds(CurvePoint, st.integers(1, 10_000), NUMBERS, NUMBERS, NUMBERS)


@given(st.lists(POINTS, max_size=4))
@settings(max_examples=40)
def test_what_is_written_is_read_back_to_the_last_bit(tmp_path_factory, points):
    """Whatever a loss may be; a report must not depend on whether its numbers came by way of a file."""
    path = tmp_path_factory.mktemp("curve") / "c"
    save_curve(points, path)
    assert repr(read_curve(path)) == repr(tuple(points))
    assert "NaN" not in path.read_text()


@pytest.mark.parametrize("text", ["{", "[]", '{"epoch": 1}', '{"epoch": 1, "train_loss": "x"}'])
def test_a_damaged_curve_is_named(tmp_path, text):
    (tmp_path / "c").write_text(text)
    with pytest.raises(RunFolderError, match="c holds no curve that can be read"):
        read_curve(tmp_path / "c")


def test_an_evaluation_of_before_curves_were_kept_has_none(tmp_path):
    assert read_curve(tmp_path / "nothing") == ()
