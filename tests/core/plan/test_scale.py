"""Signals in another unit reach an encoder on the scale that it was trained on; what cannot convert is a warning."""

from __future__ import annotations

import pytest

from clocs_core.plan.scale import Scale
from clocs_core.settings.sections import DataSettings


@pytest.mark.parametrize(("unit", "divisor"), [("V", 0.0002), ("mV", 0.2), ("uV", 200.0), ("\u00b5V", 200.0)])
def test_a_constant_is_converted_into_the_unit_of_the_signals(unit: str, divisor: float) -> None:
    """A signal of 0.4 mV is 2 after it, whatever the unit it is stored in."""
    scale = Scale("constant", 0.2, "mV")
    data = DataSettings(normalise="constant", constant=0.2)
    found = scale.settings(data, unit)
    assert (found.normalise, found.constant) == ("constant", pytest.approx(divisor, rel=1e-12))
    assert scale.warning(data, unit) == ""
    assert (found == data) == (unit == "mV")


def test_signals_that_are_left_as_they_are_are_converted_by_a_divisor() -> None:
    """What is 3 in mV is 3000 in uV, and 3 again divided by 1000."""
    found = Scale("none", None, "mV").settings(DataSettings(normalise="none"), "uV")
    assert (found.normalise, found.constant) == ("constant", pytest.approx(1000.0, rel=1e-12))


@pytest.mark.parametrize("normalise", ["min-max", "z-score"])
def test_a_signal_that_is_scaled_by_itself_needs_nothing(normalise: str) -> None:
    data = DataSettings(normalise=normalise)
    scale = Scale(normalise, None, "mV")
    for unit in ("uV", "mmHg", ""):
        assert scale.settings(data, unit) == data
        assert scale.warning(data, unit) == ""


@pytest.mark.parametrize(
    "data", [DataSettings(normalise="none"), DataSettings(normalise="constant", constant=3.0)], ids=["none", "other"]
)
def test_a_scale_that_the_user_asked_for_stays_and_other_units_are_told(data: DataSettings) -> None:
    scale = Scale("constant", 0.2, "mV")
    assert scale.settings(data, "uV") == data
    assert scale.warning(data, "uV").startswith("the encoder was trained on signals in mV, and these are in uV: ")
    assert scale.warning(data, "mV") == ""


def test_two_spellings_of_a_unit_are_one_unit() -> None:
    """The micro sign, the Greek letter and a u."""
    scale, data = Scale("constant", 200.0, "uV"), DataSettings(normalise="constant", constant=200.0)
    for unit in ("uV", "\u00b5V", "\u03bcV"):
        assert scale.settings(data, unit) == data
        assert scale.warning(data, unit) == ""


def test_units_that_do_not_convert_are_told() -> None:
    data = DataSettings(normalise="constant", constant=0.2)
    for unit, word in (("mmHg", "mmHg"), ("", "no unit")):
        scale = Scale("constant", 0.2, "mV")
        assert scale.settings(data, unit) == data
        assert f"in mV, and these are in {word}: " in scale.warning(data, unit)
