"""Find the installed plugins, load them one at a time, and set broken ones aside.

pluggy alone would skip the second of two entry points with one name, end the program at the first import error,
accept a misspelt hook, and not say which plugin a result comes from. This module reports all four.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from importlib.metadata import Distribution, EntryPoint, entry_points
from types import ModuleType

import attrs
import pluggy

from clocs_core.contracts import hookspecs
from clocs_core.contracts.events import TOLD_AGAIN
from clocs_core.errors import PluginError, neighbours
from clocs_core.files import is_full_disk
from clocs_core.plugins.api_version import DECLARED, what_to_upgrade
from clocs_core.plugins.printing import printing_to_stderr

OFFER_HOOKS = (
    "clocs_datasets",
    "clocs_views",
    "clocs_perturbations",
    "clocs_encoders",
    "clocs_losses",
    "clocs_objectives",
    "clocs_methods",
    "clocs_metrics",
    "clocs_protocols",
    "clocs_report_sections",
    "clocs_listeners",
    "clocs_grids",
    "clocs_executors",
)


@attrs.frozen
class Plugin:
    """A loaded plugin and its distribution.

    name: that of its entry point; with the distribution before it, "dist:name", where a built-in plugin or another
    distribution has the same.
    seconds: how long its import took; what it imports first counts, too.
    """

    name: str
    distribution: str
    version: str
    module: ModuleType = attrs.field(eq=False, repr=False)
    seconds: float = attrs.field(default=0.0, eq=False, repr=False)


@attrs.frozen
class Broken:
    """A plugin that could not be loaded. `problem` is a sentence that says what to do."""

    name: str
    distribution: str
    problem: str


@attrs.frozen(eq=False)
class Host:
    """The loaded plugins, the broken ones, and the methods that call their hooks.

    remarks: sentences about plugins that are loaded, for a warning.
    """

    manager: pluggy.PluginManager
    plugins: tuple[Plugin, ...]
    broken: tuple[Broken, ...]
    remarks: tuple[str, ...] = ()
    _failed: set[tuple[str, str]] = attrs.field(factory=set, init=False, repr=False)  # plugin and hook

    def names(self) -> set[str]:
        """Return the names of all plugins, loaded or broken."""
        return {plugin.name for plugin in self.plugins} | {broken.name for broken in self.broken}

    def results(self, hook: str, **arguments: object) -> Iterator[tuple[Plugin, object]]:
        """Call one hook of each plugin, in order of name; yield each result with its plugin."""
        for plugin in self.plugins:
            for result in self.call(plugin, hook, **arguments):
                yield plugin, result

    def call(self, plugin: Plugin, hook: str, **arguments: object) -> list[object]:
        """Call one hook of one plugin; return [] where it does not implement it."""
        others = [module for module in self.manager.get_plugins() if module is not plugin.module]
        results: list[object] = self.manager.subset_hook_caller(hook, others)(**arguments)
        return results

    def implementations(self, plugin: Plugin, hook: str) -> int:
        """Count the functions of one plugin that implement a hook. pluggy drops a result that is None."""
        callers = self.manager.get_hookcallers(plugin.module) or []
        found = [one for caller in callers if caller.name == hook for one in caller.get_hookimpls()]
        return sum(one.plugin is plugin.module and not (one.wrapper or one.hookwrapper) for one in found)

    def announce(self, hook: str, warn: Callable[[str], None], **arguments: object) -> None:
        """Announce an event to every plugin. One that fails causes a warning, the first time; the run continues.

        A full disk is no fault of a plugin: it stops the run, which can be resumed where there is room.
        """
        for plugin in self.plugins:
            self.tell(plugin, hook, warn, **arguments)

    def tell(self, plugin: Plugin, hook: str, warn: Callable[[str], None], **arguments: object) -> None:
        """Announce an event to one plugin, as `announce` does."""
        try:
            self.call(plugin, hook, **arguments)
        except (Exception, SystemExit) as problem:  # a listener may raise anything; training continues
            if is_full_disk(problem) and hook.removeprefix("clocs_") in TOLD_AGAIN:
                raise
            if (plugin.name, hook) in self._failed:
                return
            self._failed.add((plugin.name, hook))
            warn(
                f"plugin {plugin.name!r} ({plugin.distribution} {plugin.version}) failed in {hook}: "
                f"{type(problem).__name__}: {problem}"
            )

    def set_aside(self, plugin: Plugin, problem: str) -> Host:
        """Return a host in which one plugin is moved to the broken ones."""
        self.manager.unregister(plugin.module)
        kept = tuple(other for other in self.plugins if other is not plugin)
        return attrs.evolve(
            self, plugins=kept, broken=(*self.broken, Broken(plugin.name, plugin.distribution, problem))
        )


def installed_entry_points() -> tuple[EntryPoint, ...]:
    """List the entry points of the group `clocs` in this environment."""
    return tuple(entry_points(group=hookspecs.PROJECT))


def load_plugins(
    found: Iterable[EntryPoint],
    without: Iterable[str] = (),
    trace: Callable[[str], None] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Host:
    """Load the plugins named by entry points, except `without`. Set broken ones aside with the reason.

    without: names of plugins, or "distribution:name". Raises PluginError only when one of them is not installed.
    What plugins print while they are imported goes to stderr: it must not stand in the JSON that a command prints.
    """
    found = sorted(found, key=lambda point: (point.name, *_distribution(point)))
    named = _named_apart(found)
    without = _resolve_left_out(named, set(without))
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    if trace is not None:
        manager.trace.root.setwriter(trace)
        manager.enable_tracing()
    plugins: list[Plugin] = []
    broken: list[Broken] = []
    for name, points in named.items():
        if name in without:
            continue
        began = clock()
        with printing_to_stderr():
            loaded = _register(manager, name, points[0]) if len(points) == 1 else _duplicate(name, points)
        if isinstance(loaded, Plugin):
            plugins.append(attrs.evolve(loaded, seconds=clock() - began))
        else:
            broken.append(loaded)
    return Host(manager, tuple(plugins), tuple(broken))


def _named_apart(found: Iterable[EntryPoint]) -> dict[str, list[EntryPoint]]:
    """Return entry points by the names of their plugins.

    Where several distributions have an entry point of one name, that of clocs keeps it, and the others get their
    distribution's name in front: installing a stranger's plugin cannot switch a built-in one off.
    """
    owners: dict[str, set[str]] = {}
    for point in found:
        owners.setdefault(point.name, set()).add(_distribution(point)[0])
    named: dict[str, list[EntryPoint]] = {}
    for point in found:
        distribution, _ = _distribution(point)
        plain = len(owners[point.name]) == 1 or distribution == hookspecs.PROJECT
        named.setdefault(point.name if plain else f"{distribution}:{point.name}", []).append(point)
    return named


def _resolve_left_out(named: Mapping[str, list[EntryPoint]], without: set[str]) -> set[str]:
    """Return the names of the plugins to leave out. A name that several distributions share means all of them."""
    found: set[str] = set()
    for asked in sorted(without):
        whole = {name for name, points in named.items() if asked == f"{_distribution(points[0])[0]}:{points[0].name}"}
        shared = {name for name, points in named.items() if asked == points[0].name}
        mine = {asked} if asked in named else whole or shared
        if not mine:
            raise PluginError(
                f"No plugin {asked!r} to leave out.{neighbours(asked, named)} `clocs plugins` lists what is installed."
            )
        found |= mine
    return found


def _distribution(point: EntryPoint) -> tuple[str, str]:
    return ("unknown distribution", "?") if point.dist is None else _name_and_version(point.dist)


@lru_cache
def _name_and_version(distribution: Distribution) -> tuple[str, str]:
    """Read the metadata of a distribution once: 6 ms each time, and it is asked four times for every plugin."""
    return distribution.name, distribution.version


def _duplicate(name: str, points: list[EntryPoint]) -> Broken:
    owners = " and ".join(" ".join(_distribution(point)) for point in points)
    return Broken(
        name,
        owners,
        f"Plugin name {name!r} is taken twice, by {owners}; neither is loaded. Uninstall one of them, "
        f"or silence this with `--without {name}`.",
    )


def _register(manager: pluggy.PluginManager, name: str, point: EntryPoint) -> Plugin | Broken:
    distribution, version = _distribution(point)
    try:
        module = point.load()
        problem = what_to_upgrade(getattr(module, DECLARED, None), distribution)
        if problem:  # before its hooks are checked: hooks of another version may not exist here
            return _of_another_version(name, distribution, version, problem)
        _refuse_strange_hooks(manager, module)
        manager.register(module, name)
    except (Exception, SystemExit) as failure:  # importing a plugin may raise anything
        if manager.has_plugin(name):
            manager.unregister(name=name)
        cause = first_line(failure)
        return Broken(
            name,
            distribution,
            f"Plugin {name!r} ({distribution} {version}) could not be loaded: {cause} "
            f"Repair or uninstall {distribution}, or silence this with `--without {name}`.",
        )
    return Plugin(name, distribution, version, module)


def _of_another_version(name: str, distribution: str, version: str, problem: str) -> Broken:
    return Broken(
        name,
        distribution,
        f"Plugin {name!r} ({distribution} {version}) is not loaded because {problem}, "
        f"or silence this with `--without {name}`.",
    )


def _refuse_strange_hooks(manager: pluggy.PluginManager, module: ModuleType) -> None:
    """Refuse hooks and arguments that do not exist. pluggy accepts such hooks, and hardly explains such arguments."""
    known = {name: _arguments(spec) for name, spec in vars(hookspecs).items() if name.startswith("clocs_")}
    for name in dir(module):
        marks = manager.parse_hookimpl_opts(module, name)
        if marks is None or marks["optionalhook"]:
            continue
        hook = marks["specname"] or name
        if hook not in known:
            raise PluginError(f"it implements {hook!r}, which is no hook.{neighbours(hook, known)}")
        for argument in _arguments(getattr(module, name)):
            if argument not in known[hook]:
                raise PluginError(
                    f"its {hook} asks for {argument!r}, which that hook does not have."
                    f"{neighbours(argument, known[hook])}"
                )


def _arguments(function: Callable[..., object]) -> list[str]:
    """List the arguments that pluggy fills in: those without a default."""
    return [
        one.name
        for one in inspect.signature(function).parameters.values()
        if one.kind is one.POSITIONAL_OR_KEYWORD and one.default is one.empty
    ]


def first_line(problem: BaseException) -> str:
    """Return the first line of an error as a sentence, with its type where it is none of ours."""
    text = str(problem).strip().splitlines()
    kind = "" if isinstance(problem, PluginError) else f"{type(problem).__name__}: "
    line = (kind + (text[0] if text else "no message")).rstrip(".")
    return line if line.endswith("?") else f"{line}."
