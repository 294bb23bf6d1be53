"""The rules that keep core apart from its plugins, and core's modules in the order of the data that flows through."""

from __future__ import annotations

import ast
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import attrs
import pytest

from clocs_core.plugins.catalogue import build_catalogue
from clocs_core.plugins.host import installed_entry_points, load_plugins

ROOT = Path(__file__).parents[1]
CORE = sorted((ROOT / "clocs_core").rglob("*.py"))
PLUGINS = sorted((ROOT / "plugins" / "clocs_plugins").rglob("*.py"))
CARDS = [path for path in PLUGINS if path.name == "__init__.py" and path.parent.name != "clocs_plugins"]

# The drawing in docs/architecture.md: a folder imports from itself and from the folders above it.
ORDER = (
    ("errors", "files", "seeds", "versions", "turns", "worker_processes", "progress"),
    ("contracts",),
    ("settings",),
    ("plugins",),
    ("artifacts",),
    ("plan",),
    ("data",),
    ("train",),
    ("evaluation",),
    ("inference",),
    ("report",),
    ("workflows",),
    ("grids",),
    ("testing", "scaffold"),
    ("api",),
    ("cli", "__main__", ""),  # the last is clocs_core itself, which imports each public name when it is first used
)

HEAVY = ("torch", "numpy", "scipy", "wfdb", "pandas", "sklearn", "tensorboard", "triton", "matplotlib")
HEAVY += ("PIL", "requests", "sympy", "rich", "jinja2", "loky")

NEVER_IN_CORE = {"chapman", "cmsc", "cmlc", "cmsmlc", "simclr", "byol", "physionet", "cardiology", "ptbxl"}

LARGEST_FILE = 1_000_000  # bytes: the scores of the paper's tables take 0.76 MB

EVERYDAY = {
    "perturbations": "a kind of offer, and the name of its hook",
    "perturbed": "what happens to a view",
    "arrays": "what NumPy calls its own",
    "supervised": "a kind of control, named in every report",
    "tensorboard": "the name of a program that users know; core says how to start it",
}


# Modules without a test file of their own, and the tests that fail where they break. Shrink it; add with a reason.
KIT = "core/testing/test_testing.py: good offers pass, each mutant fails its checks; test_conformance.py: built-ins"
ELSEWHERE = {
    "api.signals": "core/api/test_encoder.py",
    "artifacts.embeddings": "core/inference/test_embed.py",
    "cli.doctor": "core/workflows/test_doctor.py",
    "cli.session": "every test in core/cli/test_cli_run.py opens one",
    "workflows.evaluation_frames": "core/workflows/test_evaluate.py",
    "workflows.several_evaluations": "core/cli/test_cli_together.py",
    "cli.summary": "core/cli/test_cli_run.py core/cli/test_cli_evaluate.py; its sentences core/report/test_tables.py",
    "evaluation.embedded_rows": "core/evaluation/test_classifiers.py",
    "contracts.batches": "records alone; core/data/test_store.py core/train/test_step.py",
    "contracts.hookspecs": "core/workflows/test_pretrain_hooks.py core/plugins/test_host.py",
    "contracts.protocols": "records alone; core/evaluation/test_protocols.py core/evaluation/test_features.py",
    "contracts.scores": "records alone; core/artifacts/test_reports.py core/artifacts/test_card.py",
    "contracts.sections": "core/report/test_sections.py",
    "contracts.grids": "core/grids/test_cells.py core/grids/test_summary.py plugins/paper_tables/test_paper_tables.py",
    "contracts.jobs": "core/grids/test_executor.py core/grids/test_results.py",
    "evaluation.distance_bins": "core/evaluation/test_patient_distances.py",
    "data.edf_records": "core/data/test_edf_file.py",
    "data.text_exports": "core/data/test_text_file.py",
    "data.array_file": "core/data/test_numpy_file.py core/data/test_hdf5_file.py core/data/test_matlab_file.py",
    "grids.axes": "core/grids/test_cells.py",
    "grids.choose": "core/grids/test_cells.py plugins/paper_tables/test_paper_tables.py",
    "grids.commit": "benchmarks/test_grid_page.py",
    "grids.exported_files": "core/grids/test_exported_tables.py",
    "grids.exported_pages": "core/grids/test_exported_tables.py",
    "grids.definition": "core/grids/test_status.py",
    "grids.display": "core/grids/test_pace.py",
    "grids.distances": "core/grids/test_histograms.py",
    "grids.drawing": "core/grids/test_panels.py core/grids/test_learning.py",
    "grids.evidence": "benchmarks/test_grid_page.py",
    "grids.figures": "core/grids/test_panels.py",
    "grids.invocations": "benchmarks/test_grid_invocations.py",
    "grids.jobs": "core/grids/test_cells.py",
    "grids.listing": "benchmarks/test_grid_story.py",
    "grids.measure": "records alone; core/grids/test_summary.py",
    "grids.notes": "core/grids/test_results.py",
    "grids.page": "benchmarks/test_grid_page.py",
    "grids.available_data": "benchmarks/test_grid_story.py",
    "grids.presets": "plugins/paper_tables/test_paper_tables.py",
    "grids.rows": "core/grids/test_summary.py",
    "grids.schedule": "benchmarks/test_grid_story.py benchmarks/test_grid_elsewhere.py",
    "inference.rows": "core/inference/test_embed.py core/inference/test_predict.py",
    "testing.assembly": "test_methods.py",
    "testing.checks": KIT,
    "testing.child": KIT,
    "testing.datasets": KIT,
    "testing.encoder_case": KIT,
    "testing.encoders": KIT,
    "testing.every_offer": KIT,
    "testing.grids": KIT,
    "testing.isolated": KIT,
    "testing.kit": KIT,
    "testing.listeners": KIT,
    "testing.loads": KIT,
    "testing.losses": KIT,
    "testing.methods": KIT,
    "testing.metrics": KIT,
    "testing.objectives": KIT,
    "testing.pace": KIT,
    "testing.plugins": KIT,
    "testing.protocols": KIT,
    "testing.recordings": KIT,
    "testing.synthetic": KIT,
    "testing.tensors": KIT,
    "testing.threads": "core/train/test_ranks.py core/train/test_shares.py",
    "testing.views": KIT,
    "train.captured_validation": "core/train/test_captured_logic.py; on a GPU core/train/test_captured.py",
    "train.min_max_kernel": "core/train/test_normalise.py",
    "train.validation": "core/train/test_loop.py core/train/test_captured_logic.py",
    "workflows.classifiers": "core/workflows/test_evaluate.py core/workflows/test_evaluate_controls.py",
    "workflows.differences": "core/workflows/test_compare.py",
    "workflows.environment": "test_third_party.py test_cuda_run.py",
}

LINES, PARAMETERS = 60, 7
LONGER = {
    "api.recordings.Recordings.__init__": "the arguments of a user, each with its own meaning",
    "api.several_seeds.pretrain_seeds": "the arguments of `pretrain`, and the number of seeds",
    "cli.evaluate.evaluate_command": "its parameters are flags",
    "cli.predict.predict_command": "its parameters are flags",
    "cli.run.run_command": "its parameters are flags",
    "testing.synthetic.synthetic_batch": "the shape of a batch, each with a default",
    "testing.synthetic.synthetic_record": "the shape of a recording, each with a default",
    "train.min_max_kernel.min_max_kernel": "a GPU kernel takes pointers and strides one by one",
}


@attrs.frozen
class Import:
    """One import, as an absolute name, and where it stands."""

    path: Path
    line: int
    name: str
    top_level: bool
    for_types_only: bool

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line} imports {self.name}"


@cache
def imports_of(path: Path) -> tuple[Import, ...]:
    """Every import of a file. `from a import b` is a.b where that is a module, else a."""

    def visit(node: ast.AST, top_level: bool, for_types_only: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                for alias in child.names:
                    yield Import(path, child.lineno, alias.name, top_level, for_types_only)
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0, f"{path}:{child.lineno}: imports are absolute here"
                assert child.module is not None
                for alias in child.names:
                    whole = f"{child.module}.{alias.name}"
                    name = whole if is_module(whole) else child.module
                    yield Import(path, child.lineno, name, top_level, for_types_only)
            elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                yield from visit(ast.Module(child.body, []), top_level, True)
                yield from visit(ast.Module(child.orelse, []), top_level, for_types_only)
            else:
                inside = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
                yield from visit(child, top_level and not inside, for_types_only)

    return tuple(visit(tree_of(path), True, False))


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def is_module(name: str) -> bool:
    place = ROOT.joinpath(*name.split("."))
    return place.with_suffix(".py").exists() or (place / "__init__.py").exists()


def module_name(path: Path) -> str:
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def rank(module: str) -> int:
    """The row of the folder that a module lies in."""
    folder = module.removeprefix("clocs_core").removeprefix(".").split(".")[0]
    found = [place for place, row in enumerate(ORDER) if folder in row]
    assert found, f"{module} lies in no folder of ORDER: give its folder a place there, and in docs/architecture.md"
    return found[0]


def is_ours(name: str) -> bool:
    return name.startswith("clocs")


def says(where: list[str]) -> str:
    return "\n".join(where)


# ---------------------------------------------------------------------------------------------------- the order of core


def test_core_imports_only_backwards_along_the_flow() -> None:
    """So that a reader can start at the top, and no change at the end of the story reaches its beginning."""
    wrong = [
        str(one)
        for path in CORE
        for one in imports_of(path)
        if one.name.startswith("clocs_core") and not one.for_types_only and rank(one.name) > rank(module_name(path))
    ]
    assert not wrong, says(wrong)


def test_core_has_no_circle_of_imports() -> None:
    """Within a row of the order too: modules that need each other are one module."""
    graph = {
        module_name(path): {
            one.name
            for one in imports_of(path)
            if one.name.startswith("clocs_core") and not one.for_types_only and one.top_level
        }
        for path in CORE
    }
    done: set[str] = set()

    def walk(module: str, above: tuple[str, ...]) -> None:
        assert module not in above, " -> ".join((*above[above.index(module) :], module))
        if module not in done:
            for other in sorted(graph.get(module, ())):
                walk(other, (*above, module))
            done.add(module)

    for module in graph:
        walk(module, ())


def test_packages_of_core_are_empty_boxes() -> None:
    """An `__init__` that imports makes every import of a sibling cost as much as all of them."""
    may_speak = {"clocs_core", "clocs_core.cli", "clocs_core.testing"}  # public, or started from outside
    full = [
        str(path.relative_to(ROOT))
        for path in CORE
        if path.name == "__init__.py"
        and module_name(path) not in may_speak
        and path.read_text(encoding="utf-8").strip()
    ]
    assert not full, says(full)


# ----------------------------------------------------------------------------------------------------- core and plugins


def test_core_imports_no_plugin() -> None:
    """Not even for its types: core finds plugins through entry points, all of them alike."""
    wrong = [str(one) for path in CORE for one in imports_of(path) if one.name.startswith("clocs_plugin")]
    assert not wrong, says(wrong)


@cache
def names_of_plugins() -> frozenset[str]:
    """The entry points of this project, and what they offer that a user asks for by name."""
    points = [point for point in installed_entry_points() if point.dist is not None and point.dist.name == "clocs"]
    catalogue, host = build_catalogue(load_plugins(points))
    shelves = (catalogue.datasets, catalogue.methods, catalogue.encoders, catalogue.losses)
    offered = {name for shelf in shelves for name in shelf.names()}
    return frozenset({plugin.name for plugin in host.plugins} | offered)


def test_the_names_of_plugins_are_known_here() -> None:
    """If nothing is installed, the next test would pass for want of names."""
    assert len(names_of_plugins()) >= 5


def test_core_says_no_name_of_a_plugin() -> None:
    """Help texts and comments included: what core says of one plugin is missing for all others."""
    names = (NEVER_IN_CORE | names_of_plugins()) - set(EVERYDAY)
    pattern = re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, sorted(names)))})(?![\w-])", re.IGNORECASE)
    texts = [*CORE, *(path for path in (ROOT / "clocs_core").rglob("*") if path.suffix in (".jinja", ".html", ".css"))]
    said = [
        f"{path.relative_to(ROOT)}:{number} says {found.group()!r}: {line.strip()}"
        for path in texts
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if (found := pattern.search(line))
    ]
    assert not said, says(said)


def test_a_plugin_imports_of_ours_the_public_api_and_its_own_folder() -> None:
    """Built-ins live by the rules of strangers, so whatever they need is there for strangers too."""
    wrong = []
    for path in PLUGINS:
        own = ".".join(module_name(path).split(".")[1:3])  # clocs_plugins.demo, below the source root plugins/
        for one in imports_of(path):
            allowed = (
                one.name == "clocs_core"
                or one.name == "clocs_core.testing"
                or one.name.startswith("clocs_core.testing.")
                or one.name == own
                or one.name.startswith(f"{own}.")
            )
            if is_ours(one.name) and not allowed:
                wrong.append(str(one))
    assert not wrong, says(wrong)


def test_the_card_of_a_plugin_is_light() -> None:
    """Every command imports every card; one that imports torch makes `clocs --help` wait for it."""
    wrong = [
        str(one)
        for path in CARDS
        for one in imports_of(path)
        if one.top_level and not one.for_types_only and one.name.split(".")[0] in HEAVY
    ]
    assert not wrong, says(wrong)
    assert len(CARDS) >= 5


# ---------------------------------------------------------------------------------------------------------- size, names


METHODS_OF_ALL_LEADS = (
    "cpc", "jepa", "mae", "vicreg", "many_segments", "pclr", "vectorcardiogram", "moco", "comet",
    "rhythm_and_patient",
)  # fmt: skip


@pytest.mark.parametrize("folder", METHODS_OF_ALL_LEADS)
def test_a_method_takes_at_most_250_lines(folder: str) -> None:
    """As a stranger would write it."""
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in PLUGINS if path.parent.name == folder)
    assert 0 < lines <= 250


def test_files_are_small_and_named_for_what_they_hold() -> None:
    """A file of 400 lines tells two stories; utils.py tells none."""
    long = [
        f"{path.relative_to(ROOT)} has {count} lines"
        for path in [*CORE, *PLUGINS]
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > 400
    ]
    assert not long, says(long)
    assert not [path for path in [*CORE, *PLUGINS] if path.stem in ("utils", "util", "helpers", "common", "misc")]


@pytest.mark.skipif(not (ROOT / ".git").exists() or shutil.which("git") is None, reason="this is no checkout of git")
def test_the_repository_holds_no_large_file() -> None:
    """A file that a trial left behind is easily committed, and every clone carries it from then on."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip(f"git refuses to list the files: {listed.stderr}")
    tracked = [ROOT / name for name in listed.stdout.split("\0") if name]
    assert tracked
    assert not says([str(path) for path in tracked if path.is_file() and path.stat().st_size > LARGEST_FILE])


def has_test_file(path: Path) -> bool:
    """Whether tests/core has test_STEM.py, test_STEM_*.py or the same with test_cli_, in the folder of its module."""
    folder = ROOT / "tests" / "core" / path.relative_to(ROOT / "clocs_core").parent
    names = (f"test_{begin}{path.stem}{end}.py" for begin in ("", "cli_") for end in ("", "_*"))
    return any(next(folder.glob(name), None) for name in names)


def test_every_module_of_core_has_a_test_file_or_a_reason() -> None:
    """A reader finds the tests of a module by its name, or in ELSEWHERE; an entry that is no longer needed goes."""
    modules = {
        module_name(path).removeprefix("clocs_core."): path
        for path in CORE
        if path.stem not in ("__init__", "__main__")
    }
    without = {name for name, path in modules.items() if not has_test_file(path)}
    wrong = [f"{name} has no test file in tests/core and no entry in ELSEWHERE" for name in without - set(ELSEWHERE)]
    wrong += [f"{name} needs no entry in ELSEWHERE" for name in set(ELSEWHERE) - without]
    for name, where in ELSEWHERE.items():
        named = re.findall(r"[\w/]+\.py", where)
        wrong += [] if named else [f"{name} is tested in no file"]
        wrong += [f"{name} is tested in {one}, which is gone" for one in named if not (ROOT / "tests" / one).exists()]
    assert not wrong, says(sorted(wrong))


def functions_of(path: Path) -> Iterator[tuple[str, int, int]]:
    """Every function of a file by its full name, with its lines and its parameters, self and cls not counted."""

    def visit(node: ast.AST, above: str) -> Iterator[tuple[str, int, int]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                name, taken = f"{above}.{child.name}", child.args
                all_of = [*taken.posonlyargs, *taken.args, *taken.kwonlyargs, taken.vararg, taken.kwarg]
                count = sum(1 for one in all_of if one is not None and one.arg not in ("self", "cls"))
                assert child.end_lineno is not None
                yield name, child.end_lineno - child.lineno + 1, count
                yield from visit(child, name)
            else:
                yield from visit(child, f"{above}.{child.name}" if isinstance(child, ast.ClassDef) else above)

    yield from visit(tree_of(path), module_name(path).removeprefix("clocs_core."))


def test_functions_of_core_are_short() -> None:
    """A function of more than 60 lines or 7 parameters does two things, but for those that say why they do not."""
    long = {
        name: f"{name} has {lines} lines and {parameters} parameters"
        for path in CORE
        for name, lines, parameters in functions_of(path)
        if lines > LINES or parameters > PARAMETERS
    }
    wrong = [told for name, told in long.items() if name not in LONGER]
    wrong += [f"{name} is short, and needs no exception" for name in LONGER if name not in long]
    assert not wrong, says(wrong)


# ------------------------------------------------------------------------------------------- what is imported, and when


def imported_by(program: str) -> set[str]:
    """The top-level packages that a fresh interpreter has imported after running a program."""
    code = f"{program}\nimport sys\nprint(*{{name.split('.')[0] for name in sys.modules}}, file=sys.__stderr__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_the_public_api_imports_nothing_heavy() -> None:
    """Worker processes that read recordings import it, and must not pay for torch."""
    assert not imported_by("import clocs_core") & set(HEAVY)


@pytest.mark.parametrize("arguments", [["--help"], ["plugins"], ["run", "--help"], ["--version"]])
def test_commands_that_only_tell_import_nothing_heavy(arguments: list[str]) -> None:
    assert not imported_by(f"from clocs_core.cli import main\nassert main({arguments}) == 0") & set(HEAVY)


_OF_A_RUN = """
import sys
from clocs_core.cli import main
from clocs_core.report.console import ConsoleDisplay

def now(stage):
    print(f"{stage}|", *(name for name in sys.argv[1].split(",") if name in sys.modules), file=sys.__stderr__)

begin = ConsoleDisplay.stage
ConsoleDisplay.stage = lambda display, text: (now(text), begin(display, text))
assert main(sys.argv[2:]) == 0
now("end")
"""


@pytest.mark.slow
def test_a_run_imports_what_it_uses_when_it_uses_it(tmp_path: Path) -> None:
    """A run on a CPU took 3 s to import torch's compiler, which it does not use, and matplotlib before its first epoch.

    torch imports its compiler with the first optimiser of torch.optim, and for assume_constant_result.
    """
    unused = {"torch._dynamo", "torch._inductor", "sympy", "triton", "requests", "wfdb"}
    late = {"matplotlib", "PIL", "sklearn", "scipy", "pandas"}  # the last two are imported by scikit-learn
    watched = [*unused, *late, "tensorboard"]
    run = ["run", "--plugin", "cmsc", "--dataset", "demo", "--epochs", "1", "--device", "cpu"]
    run += ["--out", str(tmp_path / "run"), "--data-root", str(tmp_path), "--resamples", "10"]
    done = subprocess.run(
        [sys.executable, "-c", _OF_A_RUN, ",".join(watched), *run], capture_output=True, text=True, check=True
    )
    rows = [line.partition("|") for line in done.stderr.splitlines() if "|" in line]
    imported = {stage: set(names.split()) for stage, _, names in rows}
    assert not imported["preparing recordings"] | imported["pre-training"]
    assert imported["evaluating"] <= {"tensorboard"}  # a listener, which is told of every epoch
    assert not imported["end"] & unused


def wall(*arguments: str) -> float:
    """How long a fresh interpreter takes, in s."""
    before = time.perf_counter()
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - before


@pytest.mark.parametrize("command", ["--help", "plugins"])
def test_commands_that_only_tell_answer_at_once(command: str) -> None:
    """Half a second is where a person begins to wait.

    A program that only computes took 0.12 s where this limit was set. Where it takes longer, because the machine is
    busy or slow, the command may take as many times longer. The median of pairs counts, since either may be disturbed.
    """
    taken: list[float] = []
    for _ in range(20):
        slower = max(1.0, wall("-c", "sum(range(5_000_000))") / 0.12)
        taken.append(wall("-m", "clocs_core", command) / slower)
        if len(taken) >= 3 and statistics.median(taken) < 0.5:
            return
    pytest.fail(f"clocs {command} takes {statistics.median(taken):.2f} s, expected less than 0.5 s")
