"""Show names that come from files as they are, without letting them control a terminal or a spreadsheet."""

from __future__ import annotations

import re

# Control characters but for line break and tab, those that change the direction of text, and halves of pairs, which
# stand for bytes of a file name that are no text.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_FORMULA = tuple("=+-@＝＋－＠\t\r\n")  # a spreadsheet computes what begins with one of these
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def visible(text: str) -> str:
    r"""Replace control characters by their escape: a patient called "\x1b[31m" is shown as \u001b[31m, and not red.

    The escapes are those of JSON, so that JSON stays JSON.
    """
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def as_cell(value: object) -> str:
    """Return a value for a table that a spreadsheet may open: an apostrophe stands before what would be a formula.

    Numbers stay numbers, negative ones too.
    """
    text = str(value)
    return f"'{text}" if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text) else text
