"""`clocs evaluate`: flags become settings, a mistake is one line, and the same command goes on, or tells again."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import click
import pytest
from fake_plugins import points
from fake_runs import make_run

from clocs_core.artifacts.reports import CellSummary, EvaluationReport
from clocs_core.cli import main
from clocs_core.cli.evaluate import evaluate_command
from clocs_core.settings.options import plain
from clocs_core.settings.sections import FinetuneSettings

pytestmark = pytest.mark.usefixtures("no_pictures")  # no test here looks at them

QUICK = ["-o", "resamples=10", "--device", "cpu", "--workers", "1"]
TUNE = ["--dataset", "many", "--protocol", "finetune", "--epochs", "2", "--batch-size", "64", *QUICK]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs"))


@pytest.fixture
def place(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in; the frames that the run prepared are at hand."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLOCS_DATA", str(run.parent / "data"))
    return tmp_path


def clocs(*arguments: object) -> int:
    return main(["evaluate", *map(str, arguments)], points())


def mistake(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    code = clocs(*arguments)
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert "Traceback" not in err
    lines = [line for line in err.splitlines() if not line.endswith(" …")]
    assert len(lines) == 1, err
    return lines[0].removeprefix("Error: ")


def document(folder: Path) -> dict:
    return json.loads((folder / "report.json").read_text(encoding="utf-8"))


# ------------------------------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Give one of the two: RUN, the folder of a `clocs run`, or --random with --encoder NAME."),
        (["RUN", "--random"], "--random evaluates no run; leave out "),
        (["nowhere"], "nowhere is not there. "),
        (["--random", "--encoder", "flat"], "An evaluation needs a data set (`--dataset NAME`)."),
        (["--random", "--dataset", "many"], "An untrained encoder needs its architecture (`--encoder NAME`)"),
        (["RUN", "--dataset", "mnay"], "No dataset 'mnay'. Did you mean 'many'"),
        (["RUN", "--task", "party"], "Data set 'tiny' has no task 'party'. Did you mean 'parity'?"),
        (
            ["RUN", "--protocol", "knn"],
            "No protocol 'knn'. There is: centres, finetune, linear, linear-record, patient-identification, tilted.",
        ),
        (["RUN", "--fraction-of", "leads"], "`--fraction-of …`: expected one of frames, patients, got 'leads'."),
        (["RUN", "--part", "train"], "`--part …`: expected one of validation, test, got 'train'."),
        (["RUN", "--label-fraction", "2"], "`--label-fraction …`: must be above 0 and at most 1, got 2.0."),
        (["RUN", "--epochs", "3"], "Linear evaluation trains no network, so epochs would do nothing;"),
        (["RUN", "--protocol", "finetune", "--epochs", "0"], "`--epochs …`: must be positive, got 0."),
        (["RUN", "--leads", "left", "--channels", "left"], "--leads and --channels are two names for one setting"),
        (["RUN", "--encoder", "flat"], "The encoder comes with the run: 'flat' of dimension 128."),
        (["RUN", "--unit", "mV"], "`-o unit=…`: no part of this run has an option 'unit'."),
        (["--random", "--encoder", "flat", "--unit", "mV"], "An evaluation needs a data set (`--dataset NAME`)."),
        (["RUN", "-o", "frame_samples=9"], "The encoder reads frames of 50 samples, got frame_samples = 9;"),
        (["RUN", "-o", "temperature=9"], "`-o temperature=…`: no part of this run has an option 'temperature'."),
        (["RUN", "-o", "labelled=false"], "None of the "),
        (["RUN", "--step", "captured", "--device", "cpu"], "`--step captured` needs a GPU"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(
    run: Path, place: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    """No traceback, exit code 2, and no folder that somebody has to clean up."""
    given = [run if one == "RUN" else one for one in arguments]
    assert mistake(capsys, *given).startswith(message)
    assert list(place.iterdir()) == []
    assert not (run / "evaluations").exists()


def test_a_folder_that_holds_something_else_is_not_written_to(
    run: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "letters").mkdir()
    (place / "letters" / "one").write_text("precious")
    assert clocs(run, *QUICK, "--out", "letters") == 2
    assert "letters is there already, and is no evaluation." in capsys.readouterr().err
    assert [path.name for path in (place / "letters").iterdir()] == ["one"]


# -------------------------------------------------------------------------------------------------------- an evaluation


def test_flags_reach_the_settings_and_the_report_has_all_fields(run: Path, place: Path) -> None:
    """Other programs read it: fields are neither missing nor unknown."""
    flags = ["--label-fraction", "0.5,1", "--fraction-of", "patients", "--part", "validation", "--task", "findings"]
    flags += ["--split-seed", "3", "--split", "60/20/20", "--leads", "right", "--learning-rate", "0.005", "--seed", "4"]
    flags += ["--optimiser", "adamw", "--clip", "2", "--layer-decay", "0.5"]
    assert clocs(run, *TUNE, *flags, "-o", "normalise=none", "-o", "patience=4", "--out", "e") == 0
    held = document(place / "e")
    assert list(held) == [*(field.name for field in attrs.fields(EvaluationReport)), "digest"]
    assert all(list(cell) == [field.name for field in attrs.fields(CellSummary)] for cell in held["cells"])
    settings = held["settings"]
    asked = {"epochs": 2, "batch_size": 64, "learning_rate": 0.005, "patience": 4}
    asked |= {"optimiser": "adamw", "clip": 2.0, "layer_decay": 0.5}
    assert settings["finetune"] == {**plain(FinetuneSettings()), **asked}
    assert "AdamW (weight decay 0.01) at 0.005, gradients of norm 2 at most, times 0.5 from each block" in held["how"]
    data = settings["data"]
    assert (data["task"], data["channels"], data["split_seed"]) == ("findings", ["right"], 3)
    assert (data["split"], data["normalise"]) == ("60/20/20", "none")
    assert settings["evaluate"] == {"label_fraction": [0.5, 1.0], "part": "validation", "resamples": 10}
    evaluation = settings["evaluation"]
    assert (evaluation["fraction_of"], evaluation["seed"], evaluation["init"]) == ("patients", 4, "together")
    assert (held["part"], held["seed"], held["protocol"]) == ("validation", 4, "finetune")
    files = {str(path.relative_to(place / "e")) for path in (place / "e").rglob("*") if path.is_file()}
    names = {f"classifiers/{init}-{f}.safetensors" for init in ("together", "random") for f in ("0.5", "1")}
    kept = {"settings.toml", "split.json", "recordings.json", "report.html", "report.json", "predictions.npz"}
    assert files - {".lock"} == kept | names


def test_it_writes_into_the_run_and_a_second_call_prints_the_table_again(
    run: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert clocs(run, *TUNE) == 0
    first = capsys.readouterr()
    (folder,) = (run / "evaluations").iterdir()
    assert folder.name.startswith("many-finetune-")
    lines = first.out.splitlines()
    assert lines[0].split()[:4] == ["protocol", "weights", "labels", "level"]
    assert [line.split()[:2] for line in lines[1:4]] == [
        ["finetune", "together"],
        ["finetune", "random"],
        ["prior", "class"],
    ]
    assert lines[-1] == f"Report: {folder / 'report.html'}"
    assert "Summary" in (folder / "report.html").read_text(encoding="utf-8")
    assert any("(finetune, hits, frame level, F = 1.0, one seed)" in line for line in lines)
    assert clocs(run / "encoder.safetensors", *TUNE) == 0
    again = capsys.readouterr()
    assert again.out == first.out
    assert again.err == f"{folder} is finished; this is what it found\n"


def test_an_untrained_encoder_is_evaluated_without_a_run(
    run: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert clocs("--random", "--encoder", "flat", "--embedding-dim", "8", "-o", "bias=false", *TUNE) == 0
    (folder,) = (place / "runs" / "evaluations").iterdir()
    assert folder.name.startswith("random-many-finetune-")
    held = document(folder)
    assert held["settings"]["encoder"]["bias"] is False
    assert {score["init"] for score in held["scores"]} == {"random"}
    assert "class prior" in capsys.readouterr().out


def test_ctrl_c_says_that_the_same_command_goes_on(
    run: Path, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from clocs_core.evaluation.classifiers import ClassifierMaker

    def interrupt(*_arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ClassifierMaker, "make", interrupt)
        assert clocs(run, *TUNE, "--out", "e") == 130
    assert "Stopped; finished classifiers are kept; repeat the same command to resume." in capsys.readouterr().err
    assert clocs(run, *TUNE, "--out", "e") == 0


def test_an_installed_encoder_is_evaluated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, type_command) -> None:
    """With the installed plugins, their metrics, and a data set that is made on the spot."""
    monkeypatch.chdir(tmp_path)
    command = "evaluate --random --encoder cnn --embedding-dim 8 --dataset demo --protocol finetune --epochs 1"
    done = type_command(*command.split(), *QUICK, "-o", "patients=12", "--out", "e")
    assert done.returncode == 0, done.stderr
    assert {score["metric"] for score in document(tmp_path / "e")["scores"]} >= {"auroc", "auprc", "f1", "calibration"}
    assert done.stdout.endswith("Report: e/report.html\n")


def test_every_flag_has_a_help() -> None:
    context = click.Context(evaluate_command)
    for parameter in evaluate_command.get_params(context):
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name
