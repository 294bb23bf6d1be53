"""`clocs embed`, for a data set and for a file of one's own."""

from __future__ import annotations

import csv
import re
import threading
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from begun_folders import begin_folder
from fake_encoders import PATIENTS

from clocs_core.cli import embed, main
from clocs_core.plugins.session import installed_session
from clocs_core.testing.threads import on_ranks
from clocs_core.train.ranks import Group


def test_representations_are_written(place: Path, type_command) -> None:
    """What it answers is on stdout, how it gets on is on stderr, and nothing else is left."""
    done = type_command("embed", "run", "--part", "test", "--out", "z.npz")
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"\d+ embeddings of 8 numbers, of \d+ recordings of 3 patients: z\.npz\n", done.stdout)
    assert done.stderr.splitlines() == ["preparing recordings …", "embedding …"]
    assert sorted(path.name for path in place.iterdir()) == ["run", "z.npz"]
    with np.load(place / "z.npz", allow_pickle=False) as held:
        assert set(held["part"]) == {"test"}
        assert held["embedding"].shape == (len(held["record"]), 8)


def test_all_patients_are_embedded_unless_a_part_is_asked_for(place: Path) -> None:
    assert main(["embed", "run", "--out", "z.npz", "--leads", "V2,II"]) == 0
    with np.load(place / "z.npz", allow_pickle=False) as held:
        assert len(set(held["patient"])) == PATIENTS
        assert set(held["channel"]) == {"V2", "II"}


def test_a_file_of_ones_own_is_embedded(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Text of one lead, sampled otherwise than the recordings of the run: ten seconds are two frames."""
    seconds = np.arange(4000) / 400
    np.savetxt(place / "my_ecg.csv", np.sin(2 * np.pi * seconds) + 0.1 * np.sin(35 * seconds))
    words = ["--input", "my_ecg.csv", "--sampling-rate", "400", "--channels", "ii", "--unit", "mV"]
    assert main(["embed", "run", *words, "--out", "z.npz"]) == 0
    assert capsys.readouterr().out == "2 embeddings of 8 numbers, of 1 recording: z.npz\n"
    with np.load(place / "z.npz", allow_pickle=False) as held:
        assert (held["channel"].tolist(), held["start"].tolist()) == (["II", "II"], [0, 2000])
        assert set(held["record"]) == {"my_ecg"}


def test_a_lead_that_it_never_saw_is_embedded_where_it_is_meant(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is refused in one line and leaves nothing; the flag makes of it a line to read."""
    np.savetxt(place / "my_ecg.csv", np.random.default_rng(0).normal(size=4000))
    words = ["embed", "run", "--input", "my_ecg.csv", "--sampling-rate", "400", "--channels", "MLII", "--out", "z.npz"]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert "Error: my_ecg.csv: the encoder was trained on II, V2, aVL, aVR, not on 'MLII' (nearest in name: II)" in said
    assert "give it that name: `--channels II`. To read it all the same, add `--unseen-channels`." in said
    assert not (place / "z.npz").exists()
    assert main([*words, "--unseen-channels"]) == 0
    assert "The encoder was trained on II, V2, aVL, aVR; MLII is new to it." in capsys.readouterr().err
    with np.load(place / "z.npz", allow_pickle=False) as held:
        assert held["channel"].tolist() == ["MLII", "MLII"]


def test_a_data_set_is_read_with_leads_that_the_encoder_never_saw(place: Path) -> None:
    """A transfer to other leads is what the paper does; a data set says what they are, and needs no flag."""
    assert main(["embed", "run", "--part", "test", "--leads", "V5", "--out", "z.npz"]) == 0
    with np.load(place / "z.npz", allow_pickle=False) as held:
        assert set(held["channel"]) == {"V5"}


def test_embeddings_are_a_table_where_the_file_ends_in_csv(place: Path) -> None:
    """The same rows as in the .npz: names first, then every number of the embedding, all digits of it."""
    for name in ("z.npz", "z.csv"):
        assert main(["embed", "run", "--part", "test", "--out", name]) == 0
    with (place / "z.csv").open(encoding="utf-8", newline="") as file:
        heading, *rows = csv.reader(file)
    assert heading == ["patient", "record", "channel", "start", "part", "label", *(f"e{n}" for n in range(8))]
    with np.load(place / "z.npz", allow_pickle=False) as held:
        for place_of, name in enumerate(heading[:6]):
            assert [row[place_of] for row in rows] == [str(one) for one in held[name]]
        np.testing.assert_array_equal(np.array([row[6:] for row in rows], dtype=np.float32), held["embedding"])


@pytest.mark.parametrize(
    ("words", "endings"),
    [
        (["embed", "gone", "--out", "z.parquet"], ".npz or .csv"),
        (["embed", "gone", "--out", "z"], ".npz or .csv"),
        (["export", "gone", "--out", "e.pt"], ".onnx"),
        (["data", "show", "gone", "--out", "ecg.jpeg"], ".png or .svg or .pdf"),
    ],
)
def test_a_file_of_another_ending_is_refused_before_anything_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], endings: str
) -> None:
    """It was written in the format of the command, whatever its name said."""
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    assert capsys.readouterr().err == f"Error: --out {words[-1]}: expected a name that ends in {endings}.\n"
    assert list(tmp_path.iterdir()) == []


def test_an_evaluation_is_named_as_such_and_leads_to_its_run(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It was called a run that is not finished, to be resumed."""
    begin_folder(place / "run" / "evaluations" / "e", {"evaluation": {}})
    assert main(["embed", "run/evaluations/e", "--out", "z.npz"]) == 2
    said = capsys.readouterr().err
    assert f"run/evaluations/e is an evaluation, not a run: its encoder is that of the run {place / 'run'}." in said
    assert "not finished" not in said


def test_several_processes_get_the_command_that_one_would(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    monkeypatch.setattr(embed, "start_processes", lambda count, words, _: started.append((count, words)) or 0)
    assert main(["embed", "run", "--out", "z.npz", "--processes", "3"]) == 0
    assert started == [(3, ["embed", "run", "--out", "z.npz"])]
    assert not (place / "z.npz").exists()


def test_files_are_read_by_one_process(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["embed", "run", "--input", "a.npy", "--out", "z.npz", "--processes", "2"]) == 2
    assert capsys.readouterr().err == (
        "Error: Several processes share the frames of a data set; one process reads --input.\n"
    )


def test_processes_that_share_the_frames_agree_first_and_one_of_them_writes(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here the processes are threads, whose place is that of their group."""
    assert main(["embed", "run", "--out", "one.npz"]) == 0
    mine, saved, save = threading.local(), [], embed._save
    monkeypatch.setattr(embed, "_save", lambda *given: saved.append(given[-1]) or save(*given))
    monkeypatch.setattr(embed, "is_first", lambda: mine.group.rank == 0)
    monkeypatch.setattr(embed, "met_others", lambda: nullcontext((None, None)))
    monkeypatch.setattr(embed, "joined", lambda *_: nullcontext(mine.group))
    words = ["run", "--device", "cpu", "--out", "two.npz"]

    def join(group: Group) -> None:
        mine.group = group
        embed.embed_command.main(words, obj=installed_session(), standalone_mode=False)

    on_ranks(2, join)
    assert (place / "two.npz").read_bytes() == (place / "one.npz").read_bytes()
    assert [path.name for path in saved] == ["two.npz"]
