"""Every command that a page shows can be typed, and is run, smaller. test_doc_benchmarks.py has those of benchmarks."""

import importlib
import re
import shlex
import shutil
import subprocess
import sys
from importlib.metadata import EntryPoint

import click
import numpy as np
import pytest
from doc_commands import FENCE, PAGES, ROOT, RUN_ELSEWHERE, in_order, mentioned, shown, smaller, told, write_files
from filelock import FileLock
from made_ptbxl import row, write_set

from clocs_core.cli import build_cli, main
from clocs_core.contracts.hookspecs import PROJECT
from clocs_core.plugins.host import installed_entry_points
from clocs_core.plugins.session import open_session

TUTORIAL = ROOT / "docs" / "tutorial.md"
GLOBAL_FLAGS = re.compile(r"\s--(without\s+\S+|trace-hooks)")
RUN = sorted(
    line
    for line, pages in shown().items()
    if line not in RUN_ELSEWHERE and pages != {TUTORIAL.name} and not line.startswith("python benchmarks/")
)
RUN += [line for line in told() if line not in RUN_ELSEWHERE]
OTHERS_WRITE = shutil.ignore_patterns("prepared")  # tests in other processes prepare frames there at the same time


# --------------------------------------------------------------------------------------------------------------- typed


@pytest.fixture(scope="module")
def cli():
    return build_cli(open_session(None, (), False))


def test_there_are_commands_to_check():
    assert len(shown()) > 60
    assert len(mentioned()) > 20


@pytest.mark.parametrize("line", sorted({line for line in {**shown(), **mentioned()} if line.startswith("clocs ")}))
def test_a_command_can_be_typed(line, cli, tmp_path, monkeypatch):
    """The command exists, down to the last group, and so do its flags and their values."""
    monkeypatch.chdir(tmp_path)
    for place in ("runs/first", "docs/examples/sleep"):
        (tmp_path / place).mkdir(parents=True)  # where a command asks at once
    assert {"without", "trace_hooks"} <= {parameter.name for parameter in cli.params}
    words = shlex.split(GLOBAL_FLAGS.sub("", line))[1:]
    command, context = cli, click.Context(cli, info_name="clocs")
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        name = words.pop(0)
        command = command.get_command(context, name)
        assert command is not None, f"there is no command {name!r}"
        context = click.Context(command, parent=context, info_name=name)
    if isinstance(command, click.Group):  # named as a whole, or for a flag of its own
        assert set(words) <= {flag for one in command.get_params(context) for flag in one.opts}
    elif words and not {"-h", "--help"} & set(words):
        command.make_context(context.info_name, words, parent=context.parent)


def resolvable():
    return [line for line in {**shown(), **mentioned()} if re.search(r"run .*--dataset (demo|ward)\b", line)]


@pytest.mark.parametrize("line", sorted(resolvable()))
def test_the_names_and_options_of_a_run_are_known(line, tmp_path, monkeypatch, capsys):
    """Everything is resolved before the run folder is looked at: one that is taken ends the command there."""
    write_files(ROOT / "docs" / "write-a-plugin.md", tmp_path)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").touch()
    words = [*shlex.split(line)[1:], "--out", str(tmp_path / "taken")]
    assert main(words, points(tmp_path, monkeypatch)) == 2
    assert "is there already" in capsys.readouterr().err


def test_the_make_targets_that_are_named_exist():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert {"demo", "test"} <= set(re.findall(r"(?:`|\$ )make ([\w-]+)", text)) <= targets


def test_what_is_run_elsewhere_stands_on_a_page():
    """A place for a command that nobody shows any more hides the next one."""
    assert set(RUN_ELSEWHERE) <= {*shown(), *told()}


@pytest.mark.parametrize("place", sorted(set(RUN_ELSEWHERE.values())))
def test_what_runs_a_command_elsewhere_exists(place):
    """A test that is renamed or deleted would take the command of a page with it."""
    file, name = place.split("::")
    text = (ROOT / file).read_text(encoding="utf-8")
    assert f"stage {name}\n" in text if file == ".ci/run" else f"\ndef {name}(" in text


# ----------------------------------------------------------------------------------------------------------------- run


def run(command, points=None):
    """Run a command in this folder. In this process where it is ours: an import of torch takes seconds."""
    words = shlex.split(command)
    if words[0] == "clocs":
        assert main(words[1:], points) == 0, command
        return
    if words[0] == "python":
        words[0] = sys.executable
    if words[0] == "tensorboard":
        words[:1] = [sys.executable, "-m", "tensorboard.main"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    sys.stdout.write(done.stdout)


@pytest.mark.slow
@pytest.mark.usefixtures("no_pictures")
def test_the_tutorial_from_top_to_bottom(tmp_path, monkeypatch, capsys):
    """Each command in its turn, in one folder; and what the page shows of their words is what they print."""
    monkeypatch.chdir(tmp_path)
    write_files(TUTORIAL, tmp_path)
    blocks = [found["body"] for found in FENCE.finditer(TUTORIAL.read_text(encoding="utf-8")) if not found["file"]]
    for line in "".join(blocks).splitlines():
        if line.startswith("$ "):
            command = line.removeprefix("$ ")
            said = "" if command in RUN_ELSEWHERE else said_by(smaller(command), capsys)
        elif not re.search(r"\d|^test cannot", line):  # numbers are those of more patients, and so is where a line ends
            assert line.strip() in said, f"{command} does not say: {line}"


def said_by(command, capsys):
    run(command)
    printed = capsys.readouterr()
    return printed.out + printed.err


@pytest.fixture(scope="module")
def workshop(tmp_path_factory, worker_id):
    """What a reader has by the time that a page shows a command. The processes of pytest share one: it takes 35 s."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "workshop"
    with FileLock(folder.with_suffix(".lock")):
        if not (folder / "classifier.safetensors").exists():  # made last
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            fill_workshop(folder)
    return folder


def fill_workshop(folder):
    """Files, runs, evaluations and a classifier, under the names that pages use."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("CLOCS_DATA", str(folder / "data"))
        write_own_recordings(folder)
        (folder / "docs" / "pictures").mkdir(parents=True)  # as in a checkout
        for page in (ROOT / "docs" / "write-a-plugin.md", TUTORIAL):
            write_files(page, folder)
        run("python make_ward_data.py")
        run("python make_recordings.py")
        make_runs(folder)


def make_runs(folder):
    for method, seed in [(method, seed) for method in ("cmsc", "simclr") for seed in range(3)]:
        command = f"clocs run --plugin {method} --dataset demo --seed {seed} --label-fraction 0.25,1"
        run(smaller(f"{command} --out runs/{method}-{seed}"))
    run(smaller("clocs run --plugin cmsc --dataset demo --seeds 5 --out runs/five"))
    for name, copy in {
        "other": "simclr-0",
        "cmsc": "cmsc-0",
        "simclr": "simclr-0",
        "first": "cmsc-0",
        "second": "cmsc-1",
    }.items():
        shutil.copytree(folder / "runs" / copy, folder / "runs" / name)
    run(smaller("clocs evaluate runs/first --protocol linear"))
    (linear,) = (folder / "runs/first/evaluations").iterdir()
    linear.rename(linear.with_name("demo-linear-0123abcd"))
    run(smaller("clocs evaluate runs/first --protocol finetune --label-fraction 0.5,1"))
    (classifier,) = folder.glob("runs/first/evaluations/*/classifiers/cmsc-1.safetensors")
    shutil.copy(classifier, folder / "classifier.safetensors")


def write_own_recordings(folder):
    """Signals in files under the names that pages use for the reader's own."""
    rng = np.random.default_rng(0)
    patients = np.repeat(np.arange(12), 2)
    np.savez(folder / "x.npz", x=rng.standard_normal((24, 1, 5000)).astype(np.float32))
    rows = [f"{patient},{'even' if patient % 2 == 0 else 'odd'}" for patient in patients]
    (folder / "ids.csv").write_text("patient,label\n" + "\n".join(rows) + "\n")
    np.savetxt(folder / "my_ecg.csv", rng.standard_normal(8000), fmt="%.4f")
    leads = ("I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")
    for name in ("100", "101"):
        counts = (1000 * rng.standard_normal((5000, 12))).astype("<i2")  # (sample, lead), 1000 to the mV
        counts.tofile(folder / f"{name}.dat")
        lines = [f"{name}.dat 16 1000/mV 16 0 {counts[0, i]} 0 0 {lead}" for i, lead in enumerate(leads)]
        (folder / f"{name}.hea").write_text("\n".join([f"{name} 12 500 5000", *lines]) + "\n")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Patient-NCE as released trains views")  # which is what the page tells of
@pytest.mark.parametrize("line", RUN)
def test_a_command_does_what_it_says(line, workshop, tmp_path, monkeypatch):
    """In a copy of the workshop of its own, so that none needs another to have come before it."""
    if line.startswith("clocs export"):
        pytest.importorskip("onnxscript", reason="the export needs `pip install 'clocs[onnx]'`")
    folder = tmp_path / "copy"
    shutil.copytree(workshop, folder, ignore=OTHERS_WRITE)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("CLOCS_DATA", str(workshop / "data"))  # what is prepared once serves all
    made = re.search(r"--out (runs/\S+)", line)
    if made:  # the page tells of the command that made the folder
        shutil.rmtree(folder / made[1], ignore_errors=True)
    run(smaller(line), points(folder, monkeypatch))


@pytest.mark.slow
@pytest.mark.parametrize("page", ["predict-and-compare.md", "similarity.md", "use-an-encoder.md"])
def test_a_page_from_top_to_bottom(page, workshop, tmp_path, monkeypatch):
    """One command after the other in one folder, on the data set that each names, from the run of the tutorial.

    A page named a classifier of one data set, and then recordings that it refuses; each command alone was on another.
    """
    folder, ptbxl = tmp_path / "copy", tmp_path / "data" / "ptbxl"
    shutil.copytree(workshop, folder, ignore=OTHERS_WRITE)
    for made in (folder / "runs/first/evaluations").glob("*finetune*"):
        shutil.rmtree(made)
    write_set(ptbxl, [row(n, codes=f"{{'{'AFIB' if n % 2 else 'SR'}': 0.0}}") for n in range(1, 13)])
    monkeypatch.chdir(folder)
    monkeypatch.setenv("CLOCS_DATA", str(tmp_path / "data"))
    for line in in_order(ROOT / "docs" / page):
        if not line.startswith("clocs export"):  # needs packages that are not everywhere
            run(smaller(line, stand_ins=False))


def points(folder, monkeypatch):
    """The installed plugins and those that pages show, whose modules lie in a folder, or are the examples."""
    examples = sorted(path.parent for path in (ROOT / "docs" / "examples").glob("*/pyproject.toml"))
    for place in (folder, folder / "wander", *examples):
        monkeypatch.syspath_prepend(str(place))
    for name in ("wander", "ward"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    importlib.invalidate_caches()
    shown_here = {"wander": "wander", "ward": "ward", **{one.name: f"clocs_{one.name}" for one in examples}}
    return [*installed_entry_points(), *(EntryPoint(name, module, PROJECT) for name, module in shown_here.items())]
