"""Load the plugins that a project's pyproject.toml names from its folder, installed or not."""

from __future__ import annotations

import importlib
import sys
import tomllib
from collections.abc import Collection, Mapping
from importlib.metadata import Distribution, EntryPoint
from os import PathLike
from pathlib import Path

import attrs

from clocs_core.contracts.hookspecs import PROJECT
from clocs_core.contracts.offers import Offer
from clocs_core.errors import PluginError
from clocs_core.plugins.catalogue import Catalogue, build_catalogue
from clocs_core.plugins.host import Host, Plugin, installed_entry_points, load_plugins
from clocs_core.testing.checks import Check
from clocs_core.testing.kit import checks_of
from clocs_core.testing.plugins import checks_of_plugins

SOURCES = ("src", ".")  # folders searched for a package first; then all other folders of the project


@attrs.frozen(eq=False)
class Project:
    """The plugins of one folder, with a catalogue that also holds the installed ones."""

    plugins: tuple[Plugin, ...]
    catalogue: Catalogue
    host: Host

    def offers(self) -> list[Offer]:
        """List the offers of these plugins."""
        return [item.offer for shelf in self.catalogue.shelves() for item in shelf if item.plugin in self.plugins]

    def checks(self, roots: Mapping[str, Path] | None = None) -> list[Check]:
        """Return the checks of the modules and of every offer. roots: folder of each data set's files, by its name."""
        roots = roots or {}
        offered = [checks_of(one, root=roots.get(one.name), catalogue=self.catalogue) for one in self.offers()]
        modules = checks_of_plugins(plugin.module for plugin in self.plugins)
        return modules + [check for some in offered for check in some]


def checks_of_project(folder: Path, roots: Mapping[str, Path] | None = None) -> list[Check]:
    """Return the checks of every plugin that a project's pyproject.toml names.

    roots: folder of each data set's files, by its name. The project's source folder is added to sys.path. Raise
    PluginError if a plugin cannot be loaded.
    """
    return open_project(folder).checks(roots)


def open_project(folder: Path, beside: Collection[str] | None = None) -> Project:
    """Load the plugins of a folder, and the installed ones with other names; of the latter only `beside`, if given."""
    distribution = _read(folder)
    points = tuple(distribution.entry_points)
    for point in points:
        _import_from(folder, point)
    names = {point.name for point in points}
    others = [
        point
        for point in installed_entry_points()
        if point.name not in names and (beside is None or point.name in beside)
    ]
    catalogue, host = build_catalogue(load_plugins([*others, *points]))
    for broken in host.broken:
        if broken.name in names:
            raise PluginError(broken.problem)
    for remark in host.remarks:
        if any(f" of plugin {name!r} (" in remark for name in names):
            raise PluginError(remark)
    return Project(tuple(one for one in host.plugins if one.name in names), catalogue, host)


class _Uninstalled(Distribution):
    """A project's folder as a distribution, which its entry points need."""

    def __init__(self, folder: Path, name: str, version: str, points: Mapping[str, str]) -> None:
        self.folder = folder
        lines = [f"[{PROJECT}]", *(f"{name} = {module}" for name, module in points.items())]
        self.texts = {"METADATA": f"Name: {name}\nVersion: {version}\n", "entry_points.txt": "\n".join(lines)}

    def read_text(self, filename: str) -> str | None:
        """Return one of the two files that importlib.metadata reads here."""
        return self.texts.get(filename)

    def locate_file(self, path: str | PathLike[str]) -> Path:
        """Return the path of a file of the project."""
        return self.folder / path


def _read(folder: Path) -> Distribution:
    file = folder / "pyproject.toml"
    if not file.is_file():
        raise PluginError(f"{folder} has no pyproject.toml, which would name its plugins.")
    try:
        project = tomllib.loads(file.read_text(encoding="utf-8")).get("project", {})
    except ValueError as problem:  # not TOML, or not UTF-8
        raise PluginError(f"{file} cannot be read: {problem}.") from None
    points = project.get("entry-points", {}).get(PROJECT, {})
    if not points:
        advice = f'Add [project.entry-points.{PROJECT}] with a line such as eeg = "clocs_plugin_eeg".'
        raise PluginError(f"{file} names no entry point of the group {PROJECT!r}. {advice}")
    return _Uninstalled(folder, project.get("name", folder.name), str(project.get("version", "0")), points)


def _import_from(folder: Path, point: EntryPoint) -> None:
    """Make the entry point's module import from the folder, even if another copy is installed."""
    top = point.module.split(".")[0]
    others = sorted(path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    for source in (folder / name for name in (*SOURCES, *others)):
        if (source / top).is_dir() or (source / f"{top}.py").is_file():
            break
    else:
        raise PluginError(f"{folder} names the module {point.module!r}, but neither it nor src/ contains {top}.")
    source = source.resolve()
    if str(source) not in sys.path:
        sys.path.insert(0, str(source))
    loaded = sys.modules.get(top)
    if loaded is not None and not _lies_in(loaded.__spec__.origin if loaded.__spec__ else None, source):
        for name in [name for name in sys.modules if name == top or name.startswith(f"{top}.")]:
            del sys.modules[name]  # an installed copy that the command line has already imported
    importlib.invalidate_caches()


def _lies_in(file: str | None, folder: Path) -> bool:
    return file is not None and Path(file).resolve().is_relative_to(folder)
