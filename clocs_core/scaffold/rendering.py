"""Write a new plugin to disk: one template per file, all files at once."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, FunctionLoader, StrictUndefined

from clocs_core.contracts.hookspecs import API_VERSION
from clocs_core.errors import SettingsError
from clocs_core.files import write_atomically
from clocs_core.scaffold.naming import Names

EVERY = {  # path of the file made from each template
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    "gitignore": ".gitignore",
    "workflow.yml": ".github/workflows/test.yml",
    "card.py": "src/{package}/__init__.py",
    "py.typed": "src/{package}/py.typed",
    "test_promises.py": "tests/test_promises.py",
}
BY_KIND = {
    "dataset": {"recordings.py": "src/{package}/recordings.py", "test_recordings.py": "tests/test_recordings.py"},
    "views": {"frames.py": "src/{package}/frames.py"},
    "perturbation": {"drift.py": "src/{package}/drift.py", "test_drift.py": "tests/test_drift.py"},
    "encoder": {"encoder.py": "src/{package}/encoder.py", "network.py": "src/{package}/network.py"},
    "loss": {"contrast.py": "src/{package}/contrast.py", "test_contrast.py": "tests/test_contrast.py"},
    "objective": {"predict.py": "src/{package}/predict.py", "predictor.py": "src/{package}/predictor.py"},
    "method": {"methods.py": "src/{package}/methods.py"},
    "metric": {"accuracy.py": "src/{package}/accuracy.py"},
    "protocol": {"centres.py": "src/{package}/centres.py"},
    "section": {"rows.py": "src/{package}/rows.py"},
    "grid": {"table.py": "src/{package}/table.py"},
    "executor": {"runner.py": "src/{package}/runner.py"},
    "listener": {"margins.py": "src/{package}/margins.py", "test_margins.py": "tests/test_margins.py"},
    "command": {"command.py": "src/{package}/command.py", "test_command.py": "tests/test_command.py"},
}


def render_plugin(names: Names, kinds: Sequence[str]) -> dict[str, str]:
    """Render every file of a new plugin with these kinds of offers; return the texts by path below the folder."""
    chosen = dict(EVERY)
    for kind in kinds:
        chosen |= BY_KIND[kind]
    environment = Environment(  # no escaping: the templates are trusted and the output is not HTML
        loader=FunctionLoader(_template),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    known = {"names": names, "kinds": kinds, "api": f"{API_VERSION[0]}.{API_VERSION[1]}", "clocs": version("clocs")}
    return {
        path.format(package=names.package): environment.get_template(template).render(known)
        for template, path in chosen.items()
    }


def write_plugin(folder: Path, texts: dict[str, str]) -> None:
    """Write the files of a new plugin; the folder appears whole or not at all. Raise SettingsError if it exists."""
    if folder.exists():
        raise SettingsError(f"{folder} already exists and is not changed. Choose another folder with `out=...`.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as aside:
        made = Path(aside) / folder.name
        for path, text in texts.items():
            (made / path).parent.mkdir(parents=True, exist_ok=True)
            write_atomically(made / path, text)
        made.rename(folder)


def _template(name: str) -> str:
    return files("clocs_core.scaffold").joinpath("templates", f"{name}.jinja").read_text(encoding="utf-8")
