"""The pages agree with the code: hooks, links, plugins and fields. test_doc_commands.py has the commands."""

import ast
import importlib
import inspect
import json
import re
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import attrs
import pytest
from doc_commands import FENCE, PAGES, ROOT, write_files
from safetensors import safe_open

from clocs_core.artifacts.clinical import ClassResult, Clinical
from clocs_core.artifacts.metrics import EpochRow
from clocs_core.artifacts.reports import PatientSeparation, Report, RetrievalRow, SplitSummary
from clocs_core.artifacts.run_folder import RunFolder
from clocs_core.cli import main
from clocs_core.contracts import hookspecs
from clocs_core.contracts.scores import Comparison, Score
from clocs_core.plugins.host import installed_entry_points, load_plugins
from clocs_core.plugins.session import open_session
from clocs_core.testing import checks_of, failures

DOCS = ROOT / "docs"
WRITE = DOCS / "write-a-plugin.md"

TEXT = {page: page.read_text(encoding="utf-8") for page in PAGES}
MACHINE = re.compile(r"(?<![\w.])/(tmp|work|home|root|Users|mnt|var)\b")


def name_of(page):
    return page.name


def blocks(page, kind):
    return [found["body"] for found in FENCE.finditer(TEXT[page]) if found["kind"] == kind]


def section(page, heading):
    """The text under a heading, up to the next heading of any level."""
    _, found, rest = f"\n{TEXT[page]}".partition(f"\n{heading}\n")
    assert found, f"{page.name} has no heading {heading!r}"
    return re.split(r"^#+ ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def first_column(text):
    return re.findall(r"^\| `([^`]+)` \|", text, flags=re.MULTILINE)


def fields(cls):
    return [field.name for field in attrs.fields(cls)]


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """Makes an entry point of a module that a page shows, and forgets the module afterwards."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(name):
        monkeypatch.delitem(sys.modules, name, raising=False)
        importlib.invalidate_caches()
        return EntryPoint(name=name, value=name, group=hookspecs.PROJECT)

    yield make
    for name in ("wander", "ward"):
        sys.modules.pop(name, None)


# ------------------------------------------------------------------------------------------------------------ the hooks


def specs():
    return {name: spec for name, spec in vars(hookspecs).items() if name.startswith("clocs_")}


def test_the_page_of_hooks_has_every_hook_in_calling_order_and_no_other():
    headings = re.findall(r"^## (.+)$", TEXT[DOCS / "hooks.md"], flags=re.MULTILINE)
    assert headings == list(specs())


@pytest.mark.parametrize("hook", specs())
def test_a_hook_is_shown_with_its_signature(hook):
    """Whoever copies it must get the arguments right: pluggy passes them by name."""
    text = section(DOCS / "hooks.md", f"## {hook}")
    signature = inspect.signature(specs()[hook])
    arguments = ", ".join(f"{one.name}: {one.annotation}" for one in signature.parameters.values())
    assert f"def {hook}({arguments}) -> {signature.return_annotation}\n" in text
    assert "**When:**" in text
    assert "**Return:**" in text


@pytest.mark.parametrize("hook", specs())
def test_the_example_of_a_hook_is_a_plugin_whose_offers_keep_their_promises(hook, tmp_path, plugin):
    """Examples are what people copy."""
    example = FENCE.findall(section(DOCS / "hooks.md", f"## {hook}"))[1][2]
    name = f"example_{hook}"
    (tmp_path / f"{name}.py").write_text(f"from clocs_core import hookimpl\n{example}", encoding="utf-8")
    host = load_plugins([plugin(name)])
    assert not host.broken
    assert callable(getattr(host.plugins[0].module, hook))
    catalogue = open_session([*installed_entry_points(), plugin(name)], (), False).catalogue
    mine = [item.offer for shelf in catalogue.shelves() for item in shelf if item.plugin.name == name]
    assert len(mine) == (hook in load_offer_hooks())
    for offer in mine:
        assert failures(checks_of(offer, catalogue=catalogue)) == {}
    sys.modules.pop(name, None)


def load_offer_hooks():
    return [name for name, spec in specs().items() if not inspect.signature(spec).parameters]


# ----------------------------------------------------------------------------------------------------- what is promised


def test_what_is_promised_to_notebooks_is_all_that_the_api_offers_them():
    """A new function of the API is public at once, so the page says so at once."""
    promised = section(DOCS / "stability.md", "### For notebooks and scripts")
    (listed,) = [found["body"].split() for found in FENCE.finditer(promised)]
    stub = ast.parse((ROOT / "clocs_core" / "__init__.pyi").read_text(encoding="utf-8"))
    imports = [one for one in stub.body if isinstance(one, ast.ImportFrom)]
    offered = {name.name for one in imports if one.module.startswith("api.") for name in one.names}
    assert sorted(listed) == sorted(offered | {"Listener"})


# ------------------------------------------------------------------------------------------------------ links and paths


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_and_pictures_lead_somewhere(page):
    prose = FENCE.sub("", TEXT[page])
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), f"{page.name} links to {target}"
        if anchor:
            titles = re.findall(r"^#+ (.+)$", there.read_text(encoding="utf-8"), flags=re.MULTILINE)
            assert anchor in [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_page_says_a_path_of_some_machine(page):
    assert not MACHINE.search(TEXT[page])


def test_every_page_can_be_reached_from_the_index():
    linked = set(re.findall(r"\]\(([\w-]+\.md)\)", TEXT[DOCS / "index.md"]))
    assert linked == {page.name for page in DOCS.glob("*.md")} - {"index.md"}


def test_the_modules_that_the_architecture_lists_are_those_that_exist():
    tree = next(block for block in blocks(DOCS / "architecture.md", "") if block.startswith("clocs_core/"))
    listed = set(re.findall(r"\b(\w+\.py)\b", tree))
    core = ROOT / "clocs_core"
    exist = {
        path.name
        for path in core.rglob("*.py")
        if path.stem != "__main__" and path.parent.name not in ("cli", "testing")
    }
    assert listed == exist - {"__init__.py"}


def test_the_order_of_imports_is_the_one_that_is_enforced():
    tree = ast.parse((ROOT / "tests" / "test_architecture.py").read_text(encoding="utf-8"))
    order = next(one.value for one in tree.body if isinstance(one, ast.Assign) and one.targets[0].id == "ORDER")
    rows = [[name for name in row if name != "__main__"] for row in ast.literal_eval(order)]
    told = re.findall(r"^\d+\. (.+)$", section(DOCS / "architecture.md", "## The order of imports"), flags=re.MULTILINE)
    assert [re.findall(r"`([^`]+)`", line) for line in told] == [[name or "clocs_core" for name in row] for row in rows]


# ---------------------------------------------------------------------------------------------------------- the plugins


def test_the_plugin_in_ten_lines_has_about_ten_and_keeps_its_promises(tmp_path, plugin, monkeypatch):
    write_files(WRITE, tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path / "wander"))
    code = [
        line for line in (tmp_path / "wander" / "wander.py").read_text(encoding="utf-8").splitlines() if line.strip()
    ]
    assert len(code) <= 11
    catalogue = open_session([plugin("wander")], (), False).catalogue
    assert failures(checks_of(catalogue.perturbations.get("wander").offer)) == {}


@pytest.mark.slow
def test_the_plugin_of_the_tutorial_passes_its_own_tests_and_runs(tmp_path, plugin, monkeypatch):
    """The page from top to bottom, except for pip; and what the run leaves is what run-folder.md lists."""
    files = {"make_ward_data.py", "ward.py", "test_ward.py", "pyproject.toml"}
    assert write_files(WRITE, tmp_path) == files | {"wander/wander.py", "wander/pyproject.toml"}
    monkeypatch.chdir(tmp_path)
    subprocess.run([sys.executable, "make_ward_data.py"], check=True)
    own = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "pyproject.toml", "test_ward.py"]
    done = subprocess.run(own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    words = "run --plugin cmsc --dataset ward --root ward-data -o perturbations=gap -o longest=0.3 --out runs/first"
    small = ["--epochs", "1", "-o", "resamples=10"]
    assert main([*words.split(), *small], [*installed_entry_points(), plugin("ward")]) == 0
    run_folder_is_as_described(tmp_path / "runs" / "first")


@pytest.mark.parametrize("folder", [".", "wander"])
def test_the_pyproject_of_a_plugin_names_its_module(folder, tmp_path):
    import tomllib

    write_files(WRITE, tmp_path)
    project = tomllib.loads((tmp_path / folder / "pyproject.toml").read_text(encoding="utf-8"))
    (module,) = project["project"]["entry-points"][hookspecs.PROJECT].values()
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"] == [f"{module}.py"]
    assert (tmp_path / folder / f"{module}.py").exists()


# ------------------------------------------------------------------------------------------------------- the run folder


RUN_FOLDER = DOCS / "run-folder.md"


@pytest.mark.parametrize(
    ("heading", "cls"),
    [
        ("## report.json", Report),
        ("### split", SplitSummary),
        ("### scores", Score),
        ("### comparisons", Comparison),
        ("### patients", PatientSeparation),
        ("### retrieval", RetrievalRow),
        ("### clinical", Clinical),
        ("### classes", ClassResult),
        ("## metrics.jsonl", EpochRow),
    ],
)
def test_the_fields_of_a_file_are_listed_one_by_one(heading, cls):
    assert first_column(section(RUN_FOLDER, heading)) == fields(cls)


def run_folder_is_as_described(folder):
    listed = first_column(section(RUN_FOLDER, "# The run folder"))
    paths = [
        value for value in (getattr(RunFolder(folder), name) for name in dir(RunFolder)) if isinstance(value, Path)
    ]
    assert {path.name for path in paths} <= {*listed, folder.name}
    for path in folder.iterdir():
        known = path.name in listed or f"`{path.name}`" in TEXT[RUN_FOLDER] or f"`{path.name}/`" in TEXT[RUN_FOLDER]
        assert known or path.name.startswith("events.out.tfevents."), f"run-folder.md does not tell of {path.name}"
    not_there = ("profile", "evaluations", ".told")  # two are asked for, one is removed at the end
    assert all((folder / name).exists() for name in listed if name not in not_there)
    used = json.loads((folder / "recordings.json").read_text(encoding="utf-8"))
    assert first_column(section(RUN_FOLDER, "## recordings.json")) == list(used)
    with safe_open(folder / "encoder.safetensors", framework="pt") as file:
        about = json.loads(file.metadata()["clocs"])
    assert first_column(section(RUN_FOLDER, "## encoder.safetensors")) == list(about)
    split = json.loads((folder / "split.json").read_text(encoding="utf-8"))
    assert all(f"`{key}`" in section(RUN_FOLDER, "## split.json") for key in split)
