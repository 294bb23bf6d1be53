"""Records from JSON, which has no word for NaN: null stands for it."""

from __future__ import annotations

import math
from functools import cache

import cattrs

__all__ = ["json_converter"]


@cache
def json_converter(forbid_extra_keys: bool) -> cattrs.Converter:
    """What structures records from JSON. forbid_extra_keys: whether what a record has no field for is an error."""
    converter = cattrs.Converter(forbid_extra_keys=forbid_extra_keys)
    converter.register_structure_hook(float, lambda value, _: math.nan if value is None else float(value))
    return converter
