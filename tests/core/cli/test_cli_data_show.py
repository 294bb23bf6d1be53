"""`clocs data show`, as a user types it."""

import struct

from clocs_core.cli import main


def clocs(capsys, *arguments):
    code = main([str(one) for one in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_show_draws_a_recording_and_says_what_it_is(tmp_path, capsys):
    picture = tmp_path / "ecg.png"
    code, out, _ = clocs(capsys, "data", "show", "demo", "--record", "patient-00002-visit-2", "--out", picture)
    assert code == 0
    assert "patient-00002-visit-2: patient patient-00002, SB; 12 channels, 5,000 samples at 500 Hz (10 s), mV" in out
    data = picture.read_bytes()
    assert data.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", data[16:24])
    assert width > 800
    assert height > 600


def test_an_unknown_record_answers_with_its_neighbours(tmp_path, capsys):
    code, _, err = clocs(capsys, "data", "show", "demo", "--record", "patient-2-visit-2", "--out", tmp_path / "x.png")
    assert code == 2
    assert err.startswith("Error: Data set 'demo' has no record 'patient-2-visit-2' here. Did you mean ")
    assert not (tmp_path / "x.png").exists()
