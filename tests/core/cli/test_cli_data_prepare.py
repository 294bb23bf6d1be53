"""`clocs data prepare` and `clocs data verify`, as a user types them."""

import json

import numpy as np
import pytest

from clocs_core.cli import main

SMALL = ("-o", "patients=24")


def clocs(capsys, *arguments):
    code = main([str(one) for one in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_prepare_says_what_was_found_left_out_and_how_it_is_divided(tmp_path, capsys):
    code, out, _ = clocs(capsys, "data", "prepare", "demo", "--data-root", tmp_path, *SMALL)
    assert code == 0
    assert "Found 36 recordings of 24 patients (simulated)." in out
    assert "Nothing dropped." in out
    assert "72 frames x 12 channels x 2500 samples at 500 Hz, mV, float32" in out
    assert "Labels for 'rhythm', by frame:" in out
    assert "14 / 4 / 6 patients to train / validate / test" in out
    assert "0 patients shared, 0 duplicate signals" in out


def test_a_second_prepare_reads_nothing_again(tmp_path, capsys, monkeypatch):
    clocs(capsys, "data", "prepare", "demo", "--data-root", tmp_path, *SMALL)
    monkeypatch.setattr("clocs_plugins.demo.simulator.simulate", lambda *_: pytest.fail("it was read again"))
    assert clocs(capsys, "data", "prepare", "demo", "--data-root", tmp_path, *SMALL)[0] == 0


def test_verify_finds_a_flipped_bit_and_says_what_to_do(tmp_path, capsys):
    clocs(capsys, "data", "prepare", "demo", "--data-root", tmp_path, *SMALL)
    assert "checksums are right" in clocs(capsys, "data", "verify", "demo", "--data-root", tmp_path, *SMALL)[1]
    (frames,) = tmp_path.glob("prepared/demo/*/frames.bin")
    whole = bytearray(frames.read_bytes())
    whole[1000] ^= 1
    frames.write_bytes(whole)
    code, _, err = clocs(capsys, "data", "verify", "demo", "--data-root", tmp_path, *SMALL)
    assert code == 2
    assert "frames.bin has checksum" in err
    assert "Delete that folder and prepare again." in err


def test_quiet_prints_results_and_no_progress(tmp_path, capsys):
    asked = ("data", "prepare", "demo", "--data-root", tmp_path, *SMALL)
    assert clocs(capsys, *asked)[2] == "preparing recordings …\n"
    code, out, err = clocs(capsys, *asked, "--quiet")
    assert (code, err) == (0, "")
    assert out.startswith("Found ")


@pytest.mark.filterwarnings("default::clocs_core.errors.ClocsWarning")
def test_damaged_frames_are_prepared_again_and_the_user_is_told(tmp_path, capsys):
    clocs(capsys, "data", "prepare", "demo", "--data-root", tmp_path, *SMALL)
    (frames,) = tmp_path.glob("prepared/demo/*/frames.bin")
    whole = frames.read_bytes()
    frames.write_bytes(bytes(len(whole)))
    code, _, err = clocs(capsys, "data", "prepare", "demo", "--data-root", tmp_path, *SMALL)
    assert code == 0
    assert "frames.bin has checksum" in err
    assert "they are prepared again." in err
    assert frames.read_bytes() == whole


def test_the_advice_on_frames_that_are_too_long_can_be_followed(tmp_path, capsys):
    np.savez(tmp_path / "a.npz", x=np.random.default_rng(0).normal(size=(9, 200)), sampling_rate=100.0)
    asked = ("data", "prepare", "arrays", "--root", tmp_path / "a.npz", "--data-root", tmp_path)
    code, _, err = clocs(capsys, *asked, "--frame-samples", "500")
    assert code == 2
    assert "Windows of half of it can be resampled to a frame each: `--source-samples 100`." in err
    code, out, _ = clocs(capsys, *asked, "--frame-samples", "500", "--source-samples", "100")
    assert code == 0
    assert "18 frames x 1 channels x 500 samples at 500 Hz" in out
    code, out, _ = clocs(capsys, *asked)
    assert code == 0
    assert "18 frames x 1 channels x 2500 samples" in out, "without a framing, it follows from the recordings"
    code, out, _ = clocs(capsys, *asked, "--frame-samples", "100")
    assert code == 0
    assert "18 frames x 1 channels x 100 samples" in out
    code, out, _ = clocs(capsys, "data", "verify", *asked[2:], "--frame-samples", "100")
    assert code == 0
    assert "18 frames" in out
    code, out, _ = clocs(capsys, *asked, "--source-samples", "50")
    assert "36 frames x 1 channels x 2500 samples" in out


def test_a_data_set_that_is_not_there_is_said_in_three_lines_with_the_way_to_get_it(tmp_path, capsys):
    code, _, err = clocs(capsys, "data", "prepare", "ptbxl", "--data-root", tmp_path)
    assert code == 2
    lines = err.strip().splitlines()[-3:]
    assert lines[0] == f"Error: Data set 'ptbxl' is not at {tmp_path / 'ptbxl'}."
    assert "--root FOLDER" in lines[1]
    assert "clocs data download ptbxl" in lines[2]


def test_filters_are_prepared_apart_and_are_those_of_a_run(tmp_path, capsys):
    """Frames of a run with the same filters are found, and not prepared again."""
    asked = ("data", "prepare", "demo", "--data-root", tmp_path, "-o", "patients=4")
    for more in ((), ("--band-pass", "0.5,40", "--notch", "50"), ("--band-pass", "0.5,40", "--notch", "50")):
        assert clocs(capsys, *asked, *more)[0] == 0
    made = [json.loads(one.read_text())["framing"] for one in tmp_path.glob("prepared/demo/*/manifest.json")]
    assert sorted((one["band_pass"] or [], one["notch"]) for one in made) == [([], None), ([0.5, 40.0], 50.0)]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--band-pass", "40,0.5"), "band_pass: must be two frequencies in Hz, the lower one first, got (40.0, 0.5)"),
        (("--band-pass", "40"), "expected 2 values, got 1"),
        (("--notch", "mains"), "expected a number, got 'mains'"),
        (("--notch", "-50"), "notch: must be a positive number, got -50.0"),
    ],
)
def test_filters_that_are_none_are_refused(tmp_path, capsys, words, problem):
    code, _, err = clocs(capsys, "data", "prepare", "demo", "--data-root", tmp_path, *words)
    assert code == 2
    assert problem in " ".join(err.split())


def test_the_flags_of_a_run_describe_an_array_to_every_command(tmp_path, capsys):
    """`clocs run`, `embed` and `predict` take --sampling-rate, --patients, --channels and --unit; so do these."""
    rng = np.random.default_rng(0)
    np.save(tmp_path / "x.npy", rng.normal(size=(20, 1, 2000)))
    np.save(tmp_path / "ids.npy", np.repeat([f"p{n}" for n in range(10)], 2))
    flags = ["--sampling-rate", "200", "--patients", tmp_path / "ids.npy", "--channels", "ECG", "--unit", "mV"]
    asked = ["arrays", "--root", tmp_path / "x.npy", *flags]
    code, out, err = clocs(capsys, "data", "prepare", *asked, "--data-root", tmp_path, "--workers", 1)
    assert code == 0, err
    assert "Found 20 recordings of 10 patients" in out
    command = out.split("Now: clocs ")[1].strip()
    assert command == " ".join(
        ["run", "--plugin", "METHOD", "--dataset", *map(str, asked[:3]), "--data-root", str(tmp_path), *map(str, flags)]
    )
    code, out, err = clocs(capsys, "data", "show", *asked, "--out", tmp_path / "ecg.svg")
    assert code == 0, err
    assert "x[0]: patient p0, no label; 1 channels, 2,000 samples at 200 Hz (10 s), mV" in out
    code, _, err = clocs(capsys, "data", "show", *asked, "--recrod", "x[1]")
    assert code == 2
    assert "Did you mean `--record` by `--recrod`?" in err
