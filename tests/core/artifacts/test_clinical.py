"""The results for clinicians in report.json: read back as they were, with what is not defined."""

from __future__ import annotations

import attrs
import pytest
from clinical_records import clinical, numbers

from clocs_core.artifacts.clinical import Clinical
from clocs_core.artifacts.documents import as_plain, print_record, structure_record


@pytest.mark.parametrize("held", [clinical(), numbers()])
def test_they_are_read_back_from_json(held):
    plain = as_plain(attrs.asdict(held))
    again = structure_record(plain, Clinical, "clinical")
    assert print_record(again) == print_record(held)
    assert again.worst == held.worst
    assert again.confusion == held.confusion
