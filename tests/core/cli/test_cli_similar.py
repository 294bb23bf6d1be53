"""`clocs embed` and `clocs similar`: what they take, and every mistake in one line."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from fake_encoders import ALL_AT_ONCE, installed, plan_of, write_encoder

from clocs_core.cli import main

RECORD = "patient-00003-visit-1"


def rows_of(text: str) -> list[list[str]]:
    """The cells of the table that was printed, without its headings."""
    lines = text.splitlines()
    first = next(number for number, line in enumerate(lines) if line.split()[:1] == ["rank"])
    return [line.split() for line in lines[first + 1 :] if re.match(r"\s*\d+ ", line)]


# ------------------------------------------------------------------------------------------------------- what they take


def test_neighbours_are_listed_and_drawn(place: Path, type_command) -> None:
    done = type_command("similar", "run/encoder.safetensors", "--record", RECORD, "--out", "page.html")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{RECORD} (patient patient-00003, ")
    rows = rows_of(done.stdout)
    assert [row[0] for row in rows] == ["1", "2", "3", "4", "5"]
    distances = [float(row[1]) for row in rows]
    assert distances == sorted(distances)
    assert "patient-00003" not in {row[3] for row in rows}
    assert done.stdout.endswith("Traces: page.html\n")
    page = (place / "page.html").read_text(encoding="utf-8")
    assert all(cell in page for row in rows for cell in row)
    assert "data:image/png;base64," in page
    assert "http" not in page.replace("data:image", "")


def test_single_frames_are_listed_with_where_they_begin(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["similar", "run", "--record", RECORD, "--level", "frame", "--frame", "1", "--lead", "aVL"]
    assert main([*words, "--nearness", "cosine", "--neighbours", "3", "--out", "traces.png"]) == 0
    rows = rows_of(capsys.readouterr().out)
    assert len(rows) == 3
    assert {row[3] for row in rows} <= {"II", "V2", "aVL", "aVR"}
    assert {row[4] for row in rows} <= {"0", "2,500"}
    assert (place / "traces.png").read_bytes()[:4] == b"\x89PNG"


def test_the_one_that_asks_may_be_of_another_part_than_those_that_are_searched(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A new patient is compared with those who are known."""
    main(["embed", "run", "--out", "z.npz"])
    capsys.readouterr()
    with np.load(place / "z.npz", allow_pickle=False) as held:
        record = str(held["record"][held["part"] == "train"][0])
    assert main(["similar", "run", "--record", record, "--part", "test"]) == 0
    assert {row[-1] for row in rows_of(capsys.readouterr().out)} == {"test"}


# ------------------------------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["embed", "nothing", "--out", "z.npz"], "nothing is not there. Give a folder that `clocs run` made"),
        (["embed", ".", "--out", "z.npz"], ". is not a run folder: it has no encoder.safetensors."),
        (["embed", "run", "--out", "gone/z.npz"], "Cannot write gone/z.npz: "),
        (["embed", "run", "--out", "run"], "Cannot write run: run is not a place for a file."),
        (["embed", "run", "--out", "z.npz", "--dataset", "dmeo"], "No dataset 'dmeo'. Did you mean 'demo'"),
        (["embed", "run", "--out", "z.npz", "--leads", "V12"], "Data set 'demo' has no channel 'V12'."),
        (
            ["embed", "run", "--out", "z.npz", "--leads", "II", "--channels", "II"],
            "--leads and --channels are two names",
        ),
        (["embed", "run", "--out", "z.npz", "--task", "rythm"], "Data set 'demo' has no task 'rythm'. Did you mean"),
        (
            ["embed", "run", "--out", "z.npz", "--split-seed", "x"],
            "`--split-seed …`: expected a whole number, got 'x'.",
        ),
        (["embed", "run", "--out", "z.npz", "-o", "frame_samples=9"], "The encoder reads frames of 2500 samples, got"),
        (["embed", "run", "--out", "z.npz", "--dataset", "ptbxl", "--root", "/x"], "Data set 'ptbxl' is not at /x."),
        (["embed", "run", "--out", "z.npz", "--unit", "mV"], "`-o dataset.unit=…`: 'dataset' has no option 'unit'."),
        (
            ["embed", "run", "--out", "z.npz", "--input", "x.csv", "--part", "test"],
            "--input reads a file, and --part is",
        ),
        (
            ["embed", "run", "--out", "z.npz", "--input", "x.csv", "--task", "rhythm"],
            "--input reads a file, and --task is",
        ),
        (
            ["embed", "run", "--out", "z.npz", "--input", "x.csv", "--sampling-rate", "no"],
            "--sampling-rate must be a posi",
        ),
        (["embed", "run", "--out", "z.npz", "--input", "gone.csv"], "There is no file gone.csv."),
        (
            ["embed", "run", "--out", "z.npz", "--trained-at", "250"],
            "--trained-at is about --input; a data set is framed by",
        ),
        (
            ["embed", "run", "--out", "z.npz", "--unseen-channels"],
            "--unseen-channels is about --input; for a data set, choose",
        ),
        (["export", "run", "--out", "gone/e.onnx"], "Cannot write gone/e.onnx: "),
        (["export", "run", "--out", "e.onnx", "--sampling-rate", "0"], "--sampling-rate must be a positive number of"),
        (["export", "run", "--out", "e.onnx", "--sampling-rate", "333.3"], "A frame lasts 5 s, which at 333.3 Hz are"),
        (
            ["export", "run", "--out", "e.onnx", "--sampling-rate", "2"],
            "At 2 Hz, 10 samples would be upsampled to a fra",
        ),
        (
            ["similar", "run", "--record", "patient-00003-visit-11"],
            "Data set 'demo' has no record 'patient-00003-visit-11' here. Did you mean 'patient-00003-visit-1'",
        ),
        (
            ["similar", "run", "--record", RECORD, "--lead", "II"],
            "--lead chooses a single frame; add `--level frame`, or leave it out.",
        ),
        (
            ["similar", "run", "--record", RECORD, "--level", "frame", "--frame", "7"],
            f"Record '{RECORD}' has no frame 7 of any channel that can be used; it has frame 0 of II, ",
        ),
        (
            ["similar", "run", "--record", RECORD, "--out", "page.pdf"],
            "--out page.pdf: expected a name that ends in .html or .png.",
        ),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(
    place: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    lines = [line for line in err.splitlines() if not line.endswith(" …")]
    assert lines[0].startswith(f"Error: {message}")
    assert [path.name for path in place.iterdir()] == ["run"]


def test_channels_that_the_encoder_does_not_read_are_a_mistake(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_encoder(place / "run", plan_of(installed(), ALL_AT_ONCE))
    assert main(["embed", "run", "--out", "z.npz", "--leads", "II,V2"]) == 2
    assert "Error: The encoder reads II, V2, aVL, aVR at once, got II, V2; leave out" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["embed", "similar"])
def test_every_flag_has_a_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A flag that is only named has to be guessed."""
    from clocs_core.cli.embed import embed_command
    from clocs_core.cli.similar import similar_command

    for parameter in {"embed": embed_command, "similar": similar_command}[command].params:
        if parameter.param_type_name == "option":
            assert parameter.help, parameter.name
    assert main([command, "--help"]) == 0
    assert "RUN" in capsys.readouterr().out
