"""`clocs data show`, as a user types it."""

import struct

import numpy as np
import pytest

from clocs_core.cli import main
from clocs_core.report import paper


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


@pytest.mark.parametrize("flag", ["--channels", "--leads", "-o"])
def test_the_channels_that_are_asked_for_are_drawn(tmp_path, capsys, monkeypatch, flag):
    drawn = []
    monkeypatch.setattr(paper, "draw_recording", lambda record, *_: drawn.append(record) or b"")
    given = "channels=V2,II" if flag == "-o" else "V2,II"
    code, out, _ = clocs(capsys, "data", "show", "demo", flag, given, "--out", tmp_path / "ecg.png")
    assert code == 0
    assert "; 2 channels, 5,000 samples" in out
    clocs(capsys, "data", "show", "demo", "--out", tmp_path / "ecg.png")
    (some, every), names = drawn, drawn[1].channels
    assert some.channels == ("V2", "II")
    assert len(names) == 12
    assert (some.samples == every.samples[[names.index("V2"), names.index("II")]]).all()


def test_a_preset_of_leads_is_drawn_and_an_unknown_channel_is_refused(tmp_path, capsys, no_pictures):
    code, out, _ = clocs(capsys, "data", "show", "demo", "--leads", "4", "--out", tmp_path / "ecg.png")
    assert (code, "; 4 channels, " in out) == (0, True)
    code, _, err = clocs(capsys, "data", "show", "demo", "--channels", "V9", "--out", tmp_path / "x.png")
    assert (code, "has no channel 'V9'" in err) == (2, True)
    (tmp_path / "own" / "ann").mkdir(parents=True)
    np.savetxt(tmp_path / "own" / "ann" / "1.csv", np.zeros((500, 2)), header="II,V2", comments="", delimiter=",")
    own = ["arrays", "--root", tmp_path / "own", "--sampling-rate", "125"]
    code, out, err = clocs(capsys, "data", "show", *own, "--channels", "II", "--out", tmp_path / "x.png")
    assert code == 0, err
    assert "; 1 channels, 500 samples" in out
    code, _, err = clocs(capsys, "data", "show", *own, "--channels", "II,V9", "--out", tmp_path / "x.png")
    assert (code, "has no channel 'V9'. There is: II, V2." in err) == (2, True)


def test_an_unknown_record_answers_with_its_neighbours(tmp_path, capsys):
    code, _, err = clocs(capsys, "data", "show", "demo", "--record", "patient-2-visit-2", "--out", tmp_path / "x.png")
    assert code == 2
    assert err.startswith("Error: Data set 'demo' has no record 'patient-2-visit-2' here. Did you mean ")
    assert not (tmp_path / "x.png").exists()
