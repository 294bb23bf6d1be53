"""The catalogue: every offer with its owner, and names that answer with their neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import pytest
from fake_offers import flat, offers, spread_loss, tiny, together
from fake_plugins import FakePoint, fake_point

from clocs_core import Dataset, Loss
from clocs_core.errors import AmbiguousName, UnknownName
from clocs_core.plugins.catalogue import Catalogue, build_catalogue
from clocs_core.plugins.host import Host, load_plugins


def built(*points: FakePoint) -> tuple[Catalogue, Host]:
    return build_catalogue(load_plugins(points))


def the_problem(**hooks: Any) -> str:
    """What is said of a plugin whose offers cannot be used, after checking that another one is alive."""
    catalogue, host = built(fake_point("bad", "clocs-bad", **hooks), fake_point("good", **offers()))
    assert [plugin.name for plugin in host.plugins] == ["good"]
    assert {item.plugin.name for shelf in catalogue.shelves() for item in shelf} == {"good"}
    assert catalogue.datasets.get("tiny").offer == tiny()
    (broken,) = host.broken
    start = "Plugin 'bad' (clocs-bad 1.0) could not make its offers: "
    end = ". Repair or uninstall clocs-bad, or silence this with `--without bad`."
    assert broken.problem.startswith(start)
    assert broken.problem.endswith(end)
    return broken.problem.removeprefix(start).removesuffix(end)


def test_every_offer_stands_on_the_shelf_of_its_kind() -> None:
    catalogue, host = built(fake_point("all", **offers()))
    assert host.broken == ()
    assert [shelf.names() for shelf in catalogue.shelves()] == [
        ["tiny"],
        ["leads", "pairs"],
        ["hum", "noise"],
        ["flat"],
        ["spread"],
        ["heads"],
        ["leads", "noisy", "preset", "stateful", "together"],
        ["hits", "many"],
        ["centres", "tilted"],
        ["patients"],
        ["diary"],
        ["table"],
        ["threads"],
    ]


def test_an_offer_knows_its_plugin() -> None:
    catalogue, _ = built(
        fake_point("a", clocs_datasets=lambda: [tiny("one")]), fake_point("b", clocs_datasets=lambda: [tiny("two")])
    )
    assert {item.offer.name: item.plugin.name for item in catalogue.datasets} == {"one": "a", "two": "b"}


def test_a_single_offer_need_not_be_in_a_list() -> None:
    catalogue, _ = built(fake_point("a", clocs_datasets=tiny))
    assert catalogue.datasets.names() == ["tiny"]


def test_offers_may_be_yielded() -> None:
    """The hooks promise that any iterable will do."""

    def clocs_losses() -> Iterator[Loss]:
        yield spread_loss()

    catalogue, host = built(fake_point("a", clocs_losses=clocs_losses))
    assert host.broken == ()
    assert catalogue.losses.names() == ["spread"]


def test_a_hook_that_raises_sets_its_plugin_aside() -> None:
    def clocs_metrics() -> list[Any]:
        raise RuntimeError("no licence\nfound")

    assert the_problem(clocs_datasets=lambda: [tiny("other")], clocs_metrics=clocs_metrics) == (
        "clocs_metrics raised RuntimeError: no licence"
    )


def test_a_hook_that_exits_sets_its_plugin_aside() -> None:
    def clocs_datasets() -> list[Dataset]:
        raise SystemExit(3)

    assert the_problem(clocs_datasets=clocs_datasets) == "clocs_datasets raised SystemExit: 3"


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda: ["tiny"], "TypeError: clocs_datasets must return a list of Dataset, got 'tiny'"),
        (lambda: "tiny", "TypeError: clocs_datasets must return a list of Dataset, got 'tiny'"),
        (lambda: 3, "TypeError: clocs_datasets must return a list of Dataset, got 3"),
        (lambda: {"tiny": 1}, "TypeError: clocs_datasets must return a list of Dataset, got {'tiny': 1}"),
    ],
)
def test_a_hook_that_returns_something_else_sets_its_plugin_aside(result: Any, message: str) -> None:
    assert the_problem(clocs_datasets=result) == message


def test_an_offer_of_another_kind_is_refused() -> None:
    assert the_problem(clocs_datasets=lambda: [flat()]).startswith(
        "TypeError: clocs_datasets must return a list of Dataset, got Encoder(name='flat'"
    )


def test_a_name_that_cannot_be_typed_is_refused() -> None:
    assert the_problem(clocs_datasets=lambda: [tiny("My Data")]).startswith(
        "clocs_datasets raised ValueError: Dataset has the name 'My Data'; use lower-case letters"
    )


def test_a_method_without_loss_and_objective_is_refused() -> None:
    assert the_problem(clocs_methods=lambda: [together(loss=None)]) == (
        "clocs_methods raised ValueError: method 'together' must name either a loss or an objective"
    )


def test_options_whose_types_cannot_be_resolved_are_refused() -> None:
    """A type that is only imported for the type checker would fail later, in a command that has no use for it."""
    options = attrs.make_class("Options", {"size": attrs.field(default=1, type="Unknown")}, frozen=True)
    assert the_problem(clocs_datasets=lambda: [tiny("other", options=options)]) == (
        "NameError: name 'Unknown' is not defined"
    )


def test_a_plugin_that_offers_one_name_twice_is_set_aside() -> None:
    """Leaving out "one of two plugins" would not help."""
    assert the_problem(clocs_datasets=lambda: [tiny("other"), tiny("other")]) == (
        "ValueError: clocs_datasets offers 'other' twice"
    )


def test_two_plugins_with_one_offer_are_an_error_only_where_it_is_asked_for() -> None:
    """Whoever wants another data set is not to be disturbed."""
    catalogue, host = built(
        fake_point("a", "first", clocs_datasets=lambda: [tiny(), tiny("mine")]),
        fake_point("b", "second", clocs_datasets=lambda: [tiny()]),
    )
    assert host.broken == ()
    assert catalogue.datasets.get("mine").plugin.name == "a"
    with pytest.raises(AmbiguousName) as caught:
        catalogue.datasets.get("tiny")
    assert [str(caught.value)] == catalogue.datasets.conflicts()
    assert catalogue.losses.conflicts() == []
    assert str(caught.value) == (
        "2 plugins offer the dataset 'tiny': 'a' (first 1.0) and 'b' (second 1.0). "
        "Ask for 'first:tiny' or 'second:tiny', or leave one out with `--without b` or `--without a`."
    )


def test_a_name_that_several_have_is_chosen_with_its_distribution_or_its_plugin() -> None:
    catalogue, _ = built(
        fake_point("a", "first", clocs_datasets=lambda: [tiny(summary="one")]),
        fake_point("b", "second", clocs_datasets=lambda: [tiny(summary="two")]),
        fake_point("c", "second", clocs_datasets=lambda: [tiny(summary="three")]),
    )
    chosen = {name: catalogue.datasets.get(f"{name}:tiny").offer.summary for name in ("first", "a", "b", "c")}
    assert chosen == {"first": "one", "a": "one", "b": "two", "c": "three"}
    with pytest.raises(AmbiguousName, match=r"Ask for 'b:tiny' or 'c:tiny', or leave one out"):
        catalogue.datasets.get("second:tiny")
    with pytest.raises(UnknownName, match="No dataset 'third:tiny'"):
        catalogue.datasets.get("third:tiny")


def test_a_stranger_cannot_take_the_name_of_a_built_in_offer() -> None:
    """To install a plugin would otherwise end every run that uses the built-in one. A warning says who has the name."""
    catalogue, _ = built(
        fake_point("a", "clocs", clocs_datasets=lambda: [tiny(summary="ours")]),
        fake_point("b", "strange", clocs_datasets=lambda: [tiny(summary="theirs")]),
    )
    assert catalogue.datasets.get("tiny").offer.summary == "ours"
    assert catalogue.datasets.get("strange:tiny").offer.summary == "theirs"
    (warning,) = catalogue.datasets.conflicts()
    assert "'tiny' alone is that of clocs. Ask for 'clocs:tiny' or 'strange:tiny'" in warning


def test_one_name_for_two_kinds_is_no_conflict() -> None:
    catalogue, _ = built(fake_point("a", clocs_datasets=lambda: [tiny("same")], clocs_encoders=lambda: [flat("same")]))
    assert catalogue.datasets.get("same").offer.kind == "dataset"
    assert catalogue.encoders.get("same").offer.kind == "encoder"


def test_an_unknown_name_answers_with_its_neighbour() -> None:
    catalogue, _ = built(fake_point("a", **offers()))
    with pytest.raises(UnknownName) as caught:
        catalogue.methods.get("togethr")
    assert str(caught.value) == (
        "No method 'togethr'. Did you mean 'together'? `clocs plugins` lists what is installed."
    )


def test_an_unknown_name_without_neighbours_answers_with_all_names() -> None:
    catalogue, _ = built(fake_point("a", **offers()))
    with pytest.raises(UnknownName, match=r"^No loss 'zzz'\. There is: spread\. `clocs plugins` lists"):
        catalogue.losses.get("zzz")


def test_an_unknown_name_on_an_empty_shelf_is_just_unknown() -> None:
    catalogue, _ = built()
    with pytest.raises(UnknownName, match=r"^No loss 'zzz'\. `clocs plugins` lists what is installed\.$"):
        catalogue.losses.get("zzz")


def test_an_unknown_name_also_tells_of_broken_plugins() -> None:
    """The name may be theirs: the user needs the reason, not the advice to check the spelling."""
    catalogue, _ = built(
        FakePoint("late", ImportError("No module named 'x'"), "clocs-late"),
        fake_point("rude", clocs_losses=lambda: 3),
        fake_point("good", **offers()),
    )
    with pytest.raises(UnknownName) as caught:
        catalogue.datasets.get("ppg")
    message = str(caught.value)
    assert message.startswith(
        "No dataset 'ppg'. There is: tiny. `clocs plugins` lists what is installed. Plugin 'late'"
    )
    assert "could not be loaded: ImportError: No module named 'x'" in message
    assert "Plugin 'rude' (fakes 1.0) could not make its offers: TypeError" in message


def test_the_catalogue_asks_every_plugin_once_and_in_order() -> None:
    """Offers may be costly to make, and hooks.md promises the order."""
    calls: list[str] = []
    hooks = {name: (lambda name=name: calls.append(name)) for name in offers()}
    built(fake_point("a", **hooks))
    assert calls == list(offers())


@pytest.mark.parametrize(("returned", "told"), [(None, True), ([], False)])
def test_a_hook_that_forgets_to_return_is_told_so(returned: Any, told: bool) -> None:
    """pluggy drops None in silence, and the author wonders where the data set is. Other offers stay."""
    point = fake_point("a", clocs_datasets=lambda: returned, clocs_metrics=offers()["clocs_metrics"])
    catalogue, host = build_catalogue(load_plugins([point, fake_point("b")]))
    assert [plugin.name for plugin in host.plugins] == ["a", "b"]
    assert catalogue.metrics.names()
    assert host.remarks == (
        (
            "clocs_datasets of plugin 'a' (fakes 1.0) returns None, so it offers nothing. Does it lack a `return`? "
            "If there is nothing to offer, it should return [].",
        )
        if told
        else ()
    )
