"""A folder on a server, by its RECORDS file."""

import pytest

from clocs_core.contracts.offers import Source
from clocs_core.data.server_folders import list_folder, recordings_of
from clocs_core.errors import DataError

FOLDER = Source("g1/", "https://example.org/set/g1/", endings=(".hea", ".mat"))


def test_every_recording_has_a_file_of_each_ending():
    found = recordings_of(FOLDER, "A0001\nA0002\r\n\n")
    assert [(one.file, one.address) for one in found] == [
        (f"g1/{name}{end}", f"https://example.org/set/g1/{name}{end}")
        for name in ("A0001", "A0002")
        for end in (".hea", ".mat")
    ]
    assert list_folder(FOLDER).address == "https://example.org/set/g1/RECORDS"


def test_a_line_with_a_slash_is_a_folder_with_a_list_of_its_own():
    (below,) = recordings_of(FOLDER, "sub/")
    assert below == Source("g1/sub/", "https://example.org/set/g1/sub/", endings=(".hea", ".mat"))


@pytest.mark.parametrize("line", ["../../etc/passwd", "/etc/passwd", "C:x", "a\\..\\b", "https://evil.example/x"])
def test_a_name_that_leads_out_of_the_folder_is_refused(line):
    """What a server says is not to be trusted."""
    with pytest.raises(DataError, match="leads out of that folder"):
        recordings_of(FOLDER, line)
