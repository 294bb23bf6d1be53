"""`clocs run`: every mistake is one line and exit code 2, nothing is left behind, and a run can be repeated."""

from __future__ import annotations

import errno
import json
import math
import os
import re
from pathlib import Path
from typing import Any

import attrs
import pytest
from clocs_process import run_clocs
from safetensors import safe_open

from clocs_core.artifacts.metrics import EpochRow
from clocs_core.artifacts.reports import Report, SplitSummary, read_report
from clocs_core.cli import main
from clocs_core.contracts.scores import Comparison, Score
from clocs_core.errors import DataError

pytestmark = pytest.mark.usefixtures("no_pictures")  # no test here looks at them

BASE = ["run", "--plugin", "cmsc", "--dataset", "demo"]


def left_behind(folder: Path) -> list[str]:
    """Everything under a folder, except locks of preparations, which are empty files that any process may hold."""
    return sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"
    )


def the_error(stderr: str, code: int) -> str:
    """The one line that a mistake is worth; stages that were reached are told before it."""
    assert code == 2, stderr
    assert "Traceback" not in stderr
    lines = [line for line in stderr.splitlines() if not line.endswith(" …")]
    assert len(lines) == 1, stderr
    assert lines[0].startswith("Error: ")
    return lines[0].removeprefix("Error: ")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to run in, with the data beside it."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("CLOCS_DATA", str(tmp_path / "data"))
    return folder


def mistake(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    code = main(list(arguments))
    out, err = capsys.readouterr()
    assert out == ""
    return the_error(err, code)


# ------------------------------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "A run needs a method (`--plugin NAME`). `clocs plugins` lists what is installed."),
        (["run", "--plugin", "cmsc"], "A run needs a data set (`--dataset NAME`)."),
        (["run", "--plugin", "cmcs", "--dataset", "demo"], "No method 'cmcs'. Did you mean 'cmsc'"),
        (["run", "--plugin", "cmsc", "--dataset", "dmeo"], "No dataset 'dmeo'. Did you mean 'demo'"),
        ([*BASE, "--encoder", "cnnn"], "No encoder 'cnnn'. Did you mean 'cnn'"),
        ([*BASE, "--leads", "V12"], "Data set 'demo' has no channel 'V12'. Did you mean 'V"),
        ([*BASE, "--channels", "II,x9"], "Data set 'demo' has no channel 'x9'. There is: "),
        ([*BASE, "--leads", "II", "--channels", "II"], "--leads and --channels are two names for one setting"),
        ([*BASE, "--task", "rythm"], "Data set 'demo' has no task 'rythm'. Did you mean 'rhythm'?"),
        (
            [*BASE, "-o", "temprature=1"],
            "`-o temprature=…`: no part of this run has an option 'temprature'. Did you mean",
        ),
        ([*BASE, "-o", "loss.tau=1"], "`-o loss.tau=…`: 'loss' has no option 'tau'. There is: "),
        ([*BASE, "-o", "temperature=hot"], "`-o loss.temperature=…`: expected a number, got 'hot'."),
        ([*BASE, "-o", "temperature"], "-o temperature: expected NAME=VALUE or PART.NAME=VALUE."),
        ([*BASE, "-o", "segments=1"], "`-o views.segments=…`: must be 2 or more, got 1."),
        ([*BASE, "--epochs", "2.7"], "`--epochs …`: expected a whole number, got '2.7'."),
        ([*BASE, "--seed", "-1"], "`--seed …`: must not be negative, got -1."),
        ([*BASE, "--device", "tpu"], "`--device …`: expected one of auto, cpu, cuda, got 'tpu'."),
        ([*BASE, "--label-fraction", "2"], "`--label-fraction …`: must be above 0 and at most 1, got 2.0."),
        ([*BASE, "--label-fraction", "half"], "`--label-fraction …`: expected a number, got 'half'."),
        ([*BASE, "--config", "none.toml"], "Cannot read the settings file none.toml: No such file or directory."),
        (
            ["run", "--resume", "none"],
            "none is not a run folder: it is not there. Give the folder that `clocs run` made.",
        ),
        (["run", "--resume", "."], ". is not a run folder: it has no settings.toml."),
        ([*BASE, "--resume", "x"], "--resume uses the run's own settings; leave out --dataset, --plugin."),
        (
            ["run", "--resume", "x", "--batch-size", "3", "-o", "a=1", "--out", "y", "--config", "z"],
            "--resume uses the run's own settings; leave out --batch-size, --config, --out, -o.",
        ),
        ([*BASE, "-o", "dataset.patients=2"], "Training, validation and test need at least one patient each"),
        ([*BASE, "-o", "patients=4", "-o", "frame_samples=100000"], "demo: no recording gives a frame of 100000"),
        ([*BASE, "-o", "patients=4", "-o", "frame_samples=4000"], "Method 'cmsc' contrasts 2 frames in a row of 4000"),
        ([*BASE, "-o", "patients=4", "-o", "frame_samples=20"], "Encoder 'cnn' cannot be built: "),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(
    place: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    """No traceback, exit code 2, and no run folder that somebody has to clean up."""
    assert mistake(capsys, *arguments).startswith(message)
    assert list(place.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "--plugin", "cmcs", "--dataset", "demo"],
        [*BASE, "-o", "temperature=hot"],
        [*BASE, "--config", "none.toml"],
        pytest.param([*BASE, "-o", "patients=2"], marks=pytest.mark.slow),  # imports torch first
    ],
)
def test_a_mistake_is_one_line_in_a_process_too(tmp_path: Path, arguments: list[str]) -> None:
    done = run_clocs(*arguments, cwd=tmp_path, CLOCS_DATA=str(tmp_path / "data"))
    the_error(done.stderr, done.returncode)
    assert done.stdout == ""
    assert left_behind(tmp_path) == []


def test_cuda_without_a_gpu_is_a_mistake(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    assert mistake(capsys, *BASE, "--device", "cuda") == (
        "`--device cuda` was asked for, but torch finds no GPU here; use `--device cpu` or `--device auto`."
    )
    assert list(place.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("method: cmsc\n", "settings.toml is not a TOML file: "),
        ("schema = 7\n", "settings.toml has settings of schema 7; this version of clocs reads schema 1."),
        ("seed = 3\n", "settings.toml: 'seed' stands outside of a table; did you mean to put it under [run]?"),
        (
            "[trian]\nepochs = 3\n",
            "The settings have a table [trian] that this run has no use for. Did you mean 'train'?",
        ),
        ("[train]\nepoch = 3\n", "[train] has no option 'epoch'. Did you mean 'epochs'?"),
        ("[loss]\ntemperatur = 3\n", "[loss] has no option 'temperatur'. Did you mean 'temperature'?"),
        ("[train]\nepochs = 2.7\n", "`--epochs …`: expected a whole number, got 2.7."),
        ('[encoder]\nlayer4_relu = "false"\n', "`-o encoder.layer4_relu=…`: expected true or false, got 'false'."),
    ],
)
def test_a_mistake_in_a_settings_file_is_one_line(
    place: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    (place / "settings.toml").write_text(text)
    assert mistake(capsys, *BASE, "--config", "settings.toml").startswith(message)
    assert left_behind(place) == ["settings.toml"]


def test_a_run_of_another_schema_is_not_resumed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A newer clocs may mean something else by the same words."""
    (place / "old").mkdir()
    (place / "old" / "settings.toml").write_text("schema = 7\n")
    assert mistake(capsys, "run", "--resume", "old").startswith("old/settings.toml has settings of schema 7;")
    assert left_behind(place) == ["old/settings.toml"]


@pytest.mark.parametrize("taken", ["file", "folder/file"])
def test_a_place_that_is_taken_is_not_written_to(place: Path, capsys: pytest.CaptureFixture[str], taken: str) -> None:
    (place / taken).parent.mkdir(exist_ok=True)
    (place / taken).write_text("precious")
    out = taken.split("/")[0]
    message = f"{out} is there already. Choose another folder with `--out …`, or, if it is a run that was interrupted, "
    assert mistake(capsys, *BASE, "--out", out).startswith(message)
    assert (place / taken).read_text() == "precious"
    assert left_behind(place) == [taken]


def test_a_folder_that_cannot_be_made_is_a_mistake(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file stands where a folder should be; the super-user meets that too, unlike a lack of permission."""
    (place / "file").write_text("precious")
    assert mistake(capsys, *BASE, "--out", "file/run") == (
        f"Cannot make the run folder file/run: {place / 'file'} is not a folder that can be written to."
    )
    assert left_behind(place) == ["file"]


def test_a_data_folder_that_cannot_be_made_is_a_mistake(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "file").write_text("precious")
    message = mistake(capsys, *BASE, "-o", "patients=3", "--data-root", "file", "--out", "run")
    assert "file" in message
    assert left_behind(place) == ["file"]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="the super-user may write anywhere")
def test_a_folder_without_permission_is_a_mistake(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "closed").mkdir(mode=0o500)
    assert "Permission denied" in mistake(capsys, *BASE, "-o", "patients=3", "--out", "closed/run")


def test_two_runs_with_one_folder_are_not_mixed(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first reads its recordings, perhaps for an hour; the second, of another method, has to keep out."""
    begun = []

    def prepare(*_: object) -> None:
        begun.append(1)
        if len(begun) == 1:
            assert main(["run", "--plugin", "simclr", "--dataset", "demo", "--seed", "1", "--out", "runs/one"]) == 2
        raise DataError("unreadable")

    monkeypatch.setattr("clocs_core.workflows.pretrain.prepare_run", prepare)
    assert main([*BASE, "--out", "runs/one"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "Error: Another process is working in runs/one; wait until it has ended, or choose another folder with "
        "`--out …`.",
        "Error: unreadable",
    ]
    assert begun == [1]
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("arguments", [["run", "--resume"], ["embed"]])
def test_an_evaluation_is_not_taken_for_a_run(
    place: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    """It was called unfinished, and to be resumed; resuming called it finished, with a page that is not there."""
    folder = place / "run" / "evaluations" / "e"
    folder.mkdir(parents=True)
    (folder / "settings.toml").write_text("[evaluation]\nprotocol = 'linear'\n", encoding="utf-8")
    (folder / "report.json").touch()
    (place / "run" / "encoder.safetensors").touch()
    out = ["--out", "z.npz"] if arguments == ["embed"] else []
    assert mistake(capsys, *arguments, str(folder), *out).startswith(
        f"{folder} is an evaluation, not a run: its encoder is that of the run {place / 'run'}. Its results are in "
    )


def test_an_unknown_flag_is_a_mistake(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A flag may be an option of any part of the run, so the answer names the nearest of all of them."""
    assert main([*BASE, "--epoch", "3"]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert said == "Error: `-o epoch=…`: no part of this run has an option 'epoch'. Did you mean 'epochs'?"
    assert main([*BASE, "--temperature"]) == 2
    assert capsys.readouterr().err == "Error: --temperature needs a value.\n"


# ----------------------------------------------------------------------------------------------------- a run, and again

FLAGS = [*BASE, "-o", "patients=12", "--epochs", "2", "--batch-size", "16", "-o", "resamples=20", "--device", "cpu"]

FILES = {
    "settings.toml",
    "split.json",
    "recordings.json",
    "metrics.jsonl",
    "checkpoint.safetensors",
    "encoder.safetensors",
    "report.json",
    "report.html",
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small run; data and other runs lie beside it."""
    folder = tmp_path_factory.mktemp("runs")
    assert main([*FLAGS, "--data-root", str(folder / "data"), "--out", str(folder / "first")]) == 0
    return folder / "first"


def document(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    return found


def lasting(folder: Path) -> dict[str, Any]:
    """A report without what a clock said, and without the digest of it."""
    return {
        key: value for key, value in document(folder).items() if key not in ("seconds", "digest", "date", "command")
    }


def encoder_file(folder: Path) -> tuple[dict[str, bytes], dict[str, Any]]:
    """The bytes of every tensor, and the description."""
    with safe_open(folder / "encoder.safetensors", "np") as file:
        return {name: file.get_tensor(name).tobytes() for name in file.keys()}, json.loads(file.metadata()["clocs"])  # noqa: SIM118


def test_a_run_says_what_it_saw_and_can_be_given_less(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Methods are compared on equal terms only if each sees as many instances."""
    seen = document(finished)["exposure"]
    assert seen["patients"] == document(finished)["split"]["patients"]["train"]
    assert seen["instances"] > 9
    fewer = [*FLAGS, "--data-root", str(finished.parent / "data"), "--out", str(finished.parent / "fewer")]
    few, patients = seen["patients"] - 1, seen["patients"]
    assert main([*fewer, "--batch-size", "2", "--contrast-batch", "4", "-o", f"instances={few}"]) == 0
    said = f"trains on {few} of {seen['instances']} instances, of {few} of {patients} patients"
    assert said in capsys.readouterr().err
    steps = 2 * -(-few // 4)  # of two epochs: a step is a whole contrast, not one of its batches
    assert document(finished.parent / "fewer")["exposure"] == {"patients": few, "instances": few, "steps": steps}


def test_a_finished_run_has_all_its_files(finished: Path) -> None:
    assert {path.name for path in finished.iterdir()} >= FILES
    assert not [path.name for path in finished.rglob("*.tmp")]


def test_a_report_has_all_the_fields_of_its_schema(finished: Path) -> None:
    """Other programs read it: fields are neither missing nor unknown, and those that matter are filled in."""
    held = document(finished)
    assert list(held) == [*(field.name for field in attrs.fields(Report)), "digest"]
    assert held["schema"] == 1
    assert (held["method"], held["dataset"], held["task"], held["seed"]) == ("cmsc", "demo", "rhythm", 0)
    assert (held["epochs_run"], held["stopped"]) == (2, "all epochs")
    assert set(held["split"]) == {field.name for field in attrs.fields(SplitSummary)}
    assert sum(held["split"]["patients"].values()) == 12
    assert {"clocs", "python", "torch", "numpy", "device"} <= set(held["environment"])
    assert list(held["seconds"]) == [
        "start", "prepare", "prepare/audit", "pretrain", "pretrain/training", "pretrain/validation", "evaluate",
        "evaluate/embed", "evaluate/distances", "evaluate/fit", "evaluate/bootstrap", "evaluate/classes",
        "evaluate/retrieval", "report",
    ]  # fmt: skip
    assert all(seconds > 0 for seconds in held["seconds"].values())
    assert held["settings"]["dataset"]["patients"] == 12
    for score in held["scores"]:
        assert set(score) == {field.name for field in attrs.fields(Score)}
        assert score["value"] is None or score["low"] <= score["high"]
    for compared in held["comparisons"]:
        assert set(compared) == {field.name for field in attrs.fields(Comparison)}
    # A score never stands alone: the same encoder untrained and the class prior are beside it.
    assert {(score["protocol"], score["init"]) for score in held["scores"]} == {
        ("linear", "cmsc"),
        ("linear", "random"),
        ("prior", "random"),
    }
    assert attrs.asdict(read_report((finished / "report.json").read_text(encoding="utf-8")))["seed"] == 0


def test_the_metrics_have_a_line_per_epoch(finished: Path) -> None:
    lines = [json.loads(line) for line in (finished / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["epoch"] for line in lines] == [1, 2]
    fields = {*(field.name for field in attrs.fields(EpochRow)), "digest"} - {"components"}  # this method names none
    assert all(set(line) == fields for line in lines)
    assert all(math.isfinite(line["train_loss"]) for line in lines)


def test_the_settings_of_a_run_repeat_it_to_the_last_bit(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """settings.toml has everything, defaults included, so that another version's defaults change nothing."""
    again = finished.parent / "from-settings"
    assert main(["run", "--config", str(finished / "settings.toml"), "--out", str(again)]) == 0
    assert lasting(again) == lasting(finished)
    assert (again / "settings.toml").read_bytes() == (finished / "settings.toml").read_bytes()
    (weights, card), (expected, of_first) = (encoder_file(one) for one in (again, finished))
    assert weights == expected
    assert card == {**of_first, "command": card["command"], "date": card["date"], "sha256": card["sha256"]}
    assert card["command"] == f"clocs run --config {finished / 'settings.toml'} --out {again}"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", card["date"])
    out = capsys.readouterr().out
    assert f"Report: {again / 'report.html'}" in out
    assert "cmsc" in out


@pytest.mark.slow
def test_the_same_command_in_another_process_gives_the_same_scores(finished: Path) -> None:
    """To the last bit, with frames prepared anew: nothing depends on the process, on its hashes or on a cache.

    The run goes into the current, empty folder, as it would into a folder that is mounted.
    """
    folder = finished.parent / "process"
    folder.mkdir()
    done = run_clocs(*FLAGS, "--data-root", "../other", "--out", ".", cwd=folder)
    assert done.returncode == 0, done.stderr
    for key in ("scores", "comparisons", "best_epoch", "split", "drops"):
        assert document(folder)[key] == document(finished)[key]
    assert (folder / "split.json").read_bytes() == (finished / "split.json").read_bytes()


def test_another_seed_gives_other_scores(finished: Path) -> None:
    """Or the two tests above would prove nothing."""
    other = finished.parent / "other-seed"
    arguments = ["run", "--config", str(finished / "settings.toml"), "--seed", "1", "--out", str(other)]
    assert main(arguments) == 0
    assert document(other)["scores"] != document(finished)["scores"]
    assert document(other)["split"] == document(finished)["split"]


def test_a_finished_run_is_not_run_again(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.stat().st_mtime_ns for path in finished.rglob("*")}
    assert main(["run", "--resume", str(finished)]) == 0
    assert capsys.readouterr().out == f"{finished} is finished: see {finished / 'report.html'}\n"
    assert {path: path.stat().st_mtime_ns for path in finished.rglob("*")} == before


def test_a_run_is_not_written_over(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert mistake(capsys, *FLAGS, "--out", str(finished)).startswith(f"{finished} is there already.")


def test_a_disk_that_is_full_at_the_last_event_is_an_error_and_resuming_tells_it_again(
    finished: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The report is there already; the curves of TensorBoard would lack their last values for ever."""
    out = finished.parent / "full"
    results = "clocs_plugins.tensorboard.writer.replace"

    def full(file: Path, content: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(file))

    with monkeypatch.context() as patch:
        patch.setattr(results, full)
        assert main([*FLAGS, "--data-root", str(finished.parent / "data"), "--out", str(out)]) == 2
    err = capsys.readouterr().err
    assert "No space left on device" in err
    assert str(out) in err
    assert main(["run", "--resume", str(out)]) == 0
    assert list(out.glob("events.out.tfevents.*.results.clocs"))
    assert lasting(out)["scores"] == lasting(finished)["scores"]
