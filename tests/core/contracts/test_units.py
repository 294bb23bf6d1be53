"""Units of voltage."""

from clocs_core.contracts.units import MICROVOLTS


def test_a_volt_is_a_million_microvolts_in_each_spelling():
    assert [MICROVOLTS[name] for name in ("V", "mV", "uV", "\N{MICRO SIGN}V", "\N{GREEK SMALL LETTER MU}V")] == [
        10**6,
        10**3,
        1,
        1,
        1,
    ]
