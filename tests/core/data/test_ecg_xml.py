"""XML is told apart by its root, tolerates what MUSE writes, and never expands an entity."""

from __future__ import annotations

import pytest
from made_files import wave, write_aecg, write_muse

from clocs_core.data.signal_file import open_recording
from clocs_core.errors import DataError

BOMB = '<?xml version="1.0"?><!DOCTYPE RestingECG [<!ENTITY a "ha">{}]><RestingECG>&j;</RestingECG>'
LEVELS = "".join(f'<!ENTITY {new} "{f"&{old};" * 10}">' for old, new in zip("abcdefghi", "bcdefghij", strict=True))


def test_the_root_says_which_it_is(tmp_path):
    assert open_recording(write_muse(tmp_path / "a.xml", wave(100), 100)).channels[:3] == ("I", "II", "III")
    assert open_recording(write_aecg(tmp_path / "b.xml", wave(100), 100)).channels == ("I", "II")
    (tmp_path / "c.xml").write_text("<html/>")
    with pytest.raises(DataError, match="is XML with the root 'html', expected RestingECG or AnnotatedECG"):
        open_recording(tmp_path / "c.xml")


@pytest.mark.parametrize(
    "text",
    [
        BOMB.format(LEVELS),
        '<!DOCTYPE RestingECG [<!ENTITY j SYSTEM "file:///etc/hostname">]><RestingECG>&j;</RestingECG>',
    ],
)
def test_entities_are_refused(tmp_path, text):
    (tmp_path / "a.xml").write_text(text)
    with pytest.raises(DataError, match="defines entities, which can unpack to any size; it is not read"):
        open_recording(tmp_path / "a.xml")


def test_stray_marks_of_muse_are_read_and_told(tmp_path):
    held = open_recording(write_muse(tmp_path / "a.xml", wave(100), 100))
    assert held.notes[0] == "The file has & or < in its texts, which XML forbids; they were read as such."


def test_what_is_no_xml_is_one_sentence(tmp_path):
    (tmp_path / "a.xml").write_text("<RestingECG><Waveform>")
    with pytest.raises(DataError, match=r"a\.xml cannot be read as XML: no element found"):
        open_recording(tmp_path / "a.xml")
