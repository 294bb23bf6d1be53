"""The host loads plugins one at a time: a broken one is set aside with a sentence, and the others go on."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
from fake_plugins import FakePoint, fake_module, fake_point, no_offers

from clocs_core.errors import PluginError
from clocs_core.plugins.host import Broken, installed_entry_points, load_plugins


def good(name: str = "good") -> FakePoint:
    return fake_point(name, clocs_datasets=lambda: [name])


def the_broken(*points: FakePoint) -> Broken:
    host = load_plugins([*points, good()])
    assert [plugin.name for plugin in host.plugins] == ["good"]
    assert list(host.results("clocs_datasets")) == [(host.plugins[0], ["good"])]
    assert len(host.broken) == 1
    return host.broken[0]


def test_plugins_are_called_in_the_order_of_their_names() -> None:
    """The order must not depend on the order in which distributions were installed."""
    host = load_plugins([good("b"), good("c"), good("a")])
    assert [plugin.name for plugin in host.plugins] == ["a", "b", "c"]
    assert [result for _, result in host.results("clocs_datasets")] == [["a"], ["b"], ["c"]]


def test_every_result_has_an_owner() -> None:
    """pluggy hands over results without their plugins; two plugins with one name could not be told apart."""
    host = load_plugins([good("a"), fake_point("silent"), good("b")])
    assert [(plugin.name, result) for plugin, result in host.results("clocs_datasets")] == [("a", ["a"]), ("b", ["b"])]
    assert host.call(host.plugins[2], "clocs_datasets") == []


def test_a_plugin_knows_its_distribution() -> None:
    plugin = load_plugins([FakePoint("a", fake_module("a"), "clocs-extra", "2.1")]).plugins[0]
    assert (plugin.name, plugin.distribution, plugin.version) == ("a", "clocs-extra", "2.1")


def test_the_metadata_of_a_distribution_is_read_once() -> None:
    """Reading takes 6 ms, since the README is in it. The built-in plugins would read it a hundred times."""
    read: list[str] = []

    class Slow:
        name = property(lambda _: read.append("name") or "slow")
        version = property(lambda _: read.append("version") or "1.0")

    distribution = Slow()

    class Point(FakePoint):
        dist = distribution  # type: ignore[assignment]

    assert len(load_plugins(Point(name, fake_module(name)) for name in "abc").plugins) == 3
    assert sorted(read) == ["name", "version"]


def test_an_entry_point_without_a_distribution_is_loaded() -> None:
    """importlib.metadata allows it; the report then says that it is unknown."""

    class Homeless(FakePoint):
        dist = None  # type: ignore[assignment]

    plugin = load_plugins([Homeless("a", fake_module("a"))]).plugins[0]
    assert (plugin.distribution, plugin.version) == ("unknown distribution", "?")


def twin(distribution: str, version: str = "1") -> FakePoint:
    module = fake_module(distribution, clocs_datasets=lambda: [distribution])
    return FakePoint("twin", module, distribution, version)


@pytest.mark.parametrize(
    ("owners", "names"),
    [
        (["clocs", "stranger"], ["twin", "stranger:twin"]),
        (["stranger", "clocs"], ["twin", "stranger:twin"]),
        (["clocs", "a-stranger"], ["a-stranger:twin", "twin"]),
        (["first", "second"], ["first:twin", "second:twin"]),
        (["first"], ["twin"]),
    ],
)
def test_a_name_that_two_distributions_have_is_that_of_the_built_in(owners: list[str], names: list[str]) -> None:
    """Neither was loaded: to install a stranger's plugin could switch a built-in one off."""
    host = load_plugins([twin(owner) for owner in owners])
    assert [plugin.name for plugin in host.plugins] == names
    assert host.broken == ()
    called = {plugin.name: result for plugin, result in host.results("clocs_datasets")}
    assert called == {one.name: [one.distribution] for one in host.plugins}


def test_one_distribution_that_has_a_name_twice_is_set_aside() -> None:
    assert the_broken(twin("first"), twin("first")) == Broken(
        "twin",
        "first 1 and first 1",
        "Plugin name 'twin' is taken twice, by first 1 and first 1; neither is loaded. Uninstall one of them, "
        "or silence this with `--without twin`.",
    )


@pytest.mark.parametrize(
    ("owners", "without", "left"),
    [
        (["clocs", "stranger"], "twin", ["stranger:twin"]),
        (["clocs", "stranger"], "clocs:twin", ["stranger:twin"]),
        (["clocs", "stranger"], "stranger:twin", ["twin"]),
        (["first", "second"], "first:twin", ["second:twin"]),
        (["first", "second"], "twin", []),
        (["first"], "first:twin", []),
    ],
)
def test_a_plugin_is_left_out_by_its_name_or_with_its_distribution(
    owners: list[str], without: str, left: list[str]
) -> None:
    host = load_plugins([twin(owner) for owner in owners], without=[without])
    assert [plugin.name for plugin in host.plugins] == left
    with pytest.raises(PluginError, match=r"No plugin 'second:good' to leave out\."):
        load_plugins([twin("first"), good()], without=["second:good"])


def test_the_message_of_a_broken_plugin_names_it_with_its_distribution() -> None:
    """Otherwise its advice would leave out the built-in one."""
    host = load_plugins([twin("clocs"), FakePoint("twin", RuntimeError("boom"), "stranger", "2")])
    assert [plugin.name for plugin in host.plugins] == ["twin"]
    assert host.broken[0].problem.endswith("or silence this with `--without stranger:twin`.")


def test_what_a_plugin_prints_at_import_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    class Chatty(FakePoint):
        def load(self) -> ModuleType:
            sys.stdout.write("loading weights\n")
            return fake_module("chatty")

    load_plugins([Chatty("chatty", None)])
    assert capsys.readouterr() == ("", "loading weights\n")


@pytest.mark.parametrize(
    ("problem", "cause"),
    [
        (ModuleNotFoundError("No module named 'pywavelets'"), "ModuleNotFoundError: No module named 'pywavelets'"),
        (SystemExit("needs Python 4"), "SystemExit: needs Python 4"),
        (SystemExit(), "SystemExit: no message"),
        (SyntaxError("invalid syntax"), "SyntaxError: invalid syntax"),
        (RuntimeError("two\nlines."), "RuntimeError: two"),
        (AttributeError("module 'x' has no attribute 'y'"), "AttributeError: module 'x' has no attribute 'y'"),
    ],
)
def test_a_plugin_that_cannot_be_imported_is_set_aside(problem: BaseException, cause: str) -> None:
    """One broken plugin must not take every command down, whatever its import does."""
    assert the_broken(FakePoint("bad", problem, "clocs-bad", "0.1")).problem == (
        f"Plugin 'bad' (clocs-bad 0.1) could not be loaded: {cause}. Repair or uninstall clocs-bad, "
        "or silence this with `--without bad`."
    )


def test_an_interrupt_while_plugins_are_imported_is_not_swallowed() -> None:
    with pytest.raises(KeyboardInterrupt):
        load_plugins([FakePoint("slow", KeyboardInterrupt())])


def test_a_misspelt_hook_is_refused_with_its_neighbour() -> None:
    """pluggy accepts it in silence, and its author wonders why the data set does not show up."""
    assert the_broken(fake_point("bad", clocs_dataset=no_offers)).problem == (
        "Plugin 'bad' (fakes 1.0) could not be loaded: it implements 'clocs_dataset', which is no hook. "
        "Did you mean 'clocs_datasets'? Repair or uninstall fakes, or silence this with "
        "`--without bad`."
    )


def test_a_hook_without_the_prefix_is_refused_with_its_neighbour() -> None:
    assert "it implements 'metrics', which is no hook. Did you mean 'clocs_metrics'" in (
        the_broken(fake_point("bad", metrics=no_offers)).problem
    )


def test_a_misspelt_hook_does_not_spoil_the_plugins_after_it() -> None:
    """What is set aside must also be forgotten by pluggy, or the next check fails again."""
    host = load_plugins([fake_point("a", clocs_dataset=no_offers), good("b"), good("c")])
    assert [plugin.name for plugin in host.plugins] == ["b", "c"]
    assert [broken.name for broken in host.broken] == ["a"]


def test_a_wrong_argument_of_a_hook_is_named() -> None:
    """The first line of pluggy's message does not say which argument is wrong."""
    assert the_broken(fake_point("bad", clocs_epoch_done=lambda run, epok: None)).problem == (
        "Plugin 'bad' (fakes 1.0) could not be loaded: its clocs_epoch_done asks for 'epok', which that hook does "
        "not have. Did you mean 'epoch'? Repair or uninstall fakes, or silence this with `--without bad`."
    )


def test_a_hook_may_ask_for_fewer_arguments() -> None:
    heard: list[object] = []
    host = load_plugins([fake_point("a", clocs_epoch_done=lambda epoch: heard.append(epoch))])
    host.announce("clocs_epoch_done", pytest.fail, run=1, epoch=2)
    assert heard == [2]


def test_one_module_under_two_names_is_loaded_once() -> None:
    """Otherwise every offer of it would be ambiguous."""
    module = fake_module("m", clocs_datasets=lambda: ["m"])
    host = load_plugins([FakePoint("a", module), FakePoint("b", module)])
    assert [plugin.name for plugin in host.plugins] == ["a"]
    assert host.broken[0].name == "b"
    assert list(host.results("clocs_datasets")) == [(host.plugins[0], ["m"])]


def test_a_plugin_that_is_left_out_is_not_even_imported() -> None:
    """`--without` is the way out when an import hangs or fails."""
    host = load_plugins([FakePoint("bad", RuntimeError("boom")), good()], without=["bad"])
    assert [plugin.name for plugin in host.plugins] == ["good"]
    assert host.broken == ()


def test_leaving_out_a_name_that_is_taken_twice_leaves_out_both() -> None:
    points = [FakePoint("twin", ModuleType("x"), "first"), FakePoint("twin", ModuleType("y"), "second")]
    host = load_plugins(points, without=["twin"])
    assert (host.plugins, host.broken) == ((), ())


def test_leaving_out_an_unknown_plugin_is_a_mistake() -> None:
    """A typing error would silently leave the plugin in."""
    with pytest.raises(PluginError) as caught:
        load_plugins([good("tracker")], without=["trackr"])
    assert str(caught.value) == (
        "No plugin 'trackr' to leave out. Did you mean 'tracker'? `clocs plugins` lists what is installed."
    )


@pytest.mark.parametrize("problem", [RuntimeError("disk is full"), SystemExit("bye")])
def test_a_listener_that_fails_costs_a_warning(problem: BaseException) -> None:
    """Hours of training must not be lost because a progress bar failed, or called sys.exit."""

    def fail(run: object) -> None:
        raise problem

    heard: list[object] = []
    warnings: list[str] = []
    host = load_plugins(
        [fake_point("a", clocs_run_started=fail), fake_point("b", clocs_run_started=lambda run: heard.append(run))]
    )
    host.announce("clocs_run_started", warnings.append, run="it")
    assert heard == ["it"]
    assert warnings == [f"plugin 'a' (fakes 1.0) failed in clocs_run_started: {type(problem).__name__}: {problem}"]


def test_ctrl_c_in_a_listener_stops_the_run() -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    host = load_plugins([fake_point("a", clocs_run_started=interrupt)])
    with pytest.raises(KeyboardInterrupt):
        host.announce("clocs_run_started", pytest.fail, run="it")


def test_tracing_shows_every_hook_call() -> None:
    lines: list[str] = []
    host = load_plugins([good("a")], trace=lines.append)
    list(host.results("clocs_datasets"))
    assert any("clocs_datasets" in line for line in lines)


def test_the_installed_plugins_all_load() -> None:
    """They come through entry points like everybody else's."""
    host = load_plugins(installed_entry_points())
    assert host.broken == ()
    assert {plugin.distribution for plugin in host.plugins} >= {"clocs"}


def test_the_time_of_each_import_is_kept() -> None:
    """`clocs plugins` names the plugin that makes every command slow."""
    now = [0.0]

    class Slow(FakePoint):
        def load(self) -> ModuleType:
            now[0] += 1.5
            return fake_module(self.name)

    host = load_plugins([good(), Slow("slow", None)], clock=lambda: now[0])
    assert {plugin.name: plugin.seconds for plugin in host.plugins} == {"good": 0.0, "slow": 1.5}
