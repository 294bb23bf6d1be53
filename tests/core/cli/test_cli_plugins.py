"""`clocs plugins`, and the options that stand anywhere on the line."""

from __future__ import annotations

import json
import sys
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

import attrs
import pytest
from clocs_process import run_clocs
from fake_offers import flat, offers, tiny, together
from fake_plugins import FakePoint, fake_module, fake_point

from clocs_core import API_VERSION, Variant, __version__, option
from clocs_core.cli import main

T = TypeVar("T")
BROKEN = FakePoint("late", ImportError("No module named 'x'"), "clocs-late")


def test_the_list_names_every_plugin_with_its_offers() -> None:
    done = run_clocs("plugins")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"(clocs {__version__})" in done.stdout
    assert any(line.split()[:1] == ["method"] for line in done.stdout.splitlines())
    assert any(line.split()[:1] == ["dataset"] for line in done.stdout.splitlines())


def test_the_list_in_the_words_of_its_plugins(capsys: pytest.CaptureFixture[str]) -> None:
    listener = fake_point("listener", clocs_run_done=lambda: None)
    assert main(["plugins"], [fake_point("all", **offers()), listener, BROKEN]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0] == "all  (fakes 1.0)"
    assert lines[1].split() == ["dataset", "tiny", "ten", "patients"]
    assert lines[-3:] == [
        "listener  (fakes 1.0)",
        "  listens to events, or adds commands",
        "late  (clocs-late)  not loaded",
    ]
    assert err.startswith("Warning: Plugin 'late' (clocs-late 1.0) could not be loaded: ImportError: ")
    assert err.count("\n") == 1


def test_a_long_name_does_not_run_into_its_summary(capsys: pytest.CaptureFixture[str]) -> None:
    name = "a-name-of-more-than-sixteen-letters"
    point = fake_point("all", clocs_datasets=lambda: [tiny(), attrs.evolve(tiny(), name=name)])
    assert main(["plugins"], [point]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    assert rows == [f"  dataset      {one:<37}{tiny().summary}" for one in ("tiny", name)]


def test_two_plugins_with_one_offer_cost_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    """Before somebody asks for it: whoever installed the second one should hear of it."""
    points = [fake_point("one", clocs_datasets=lambda: [tiny()]), fake_point("two", clocs_datasets=lambda: [tiny()])]
    assert main(["plugins"], points) == 0
    out, err = capsys.readouterr()
    assert err.startswith("Warning: 2 plugins offer the dataset 'tiny': 'one' (fakes 1.0) and 'two' (fakes 1.0).")
    assert err.count("\n") == 1
    assert out.count("tiny") == 2


def test_json_has_every_option_of_every_offer(capsys: pytest.CaptureFixture[str]) -> None:
    """Other programs read it; `clocs run --help` sends people there."""
    assert main(["plugins", "--json"], [fake_point("all", **offers()), BROKEN]) == 0
    document = json.loads(capsys.readouterr().out)
    assert set(document) == {"api", "plugins", "offers", "broken"}
    assert document["api"] == f"{API_VERSION[0]}.{API_VERSION[1]}"
    (listed,) = document["plugins"]
    assert listed.pop("seconds") < 10
    assert listed == {"name": "all", "distribution": "fakes", "version": "1.0"}
    assert document["broken"][0]["name"] == "late"
    assert document["broken"][0]["problem"].startswith("Plugin 'late' (clocs-late 1.0) could not be loaded")
    by_name = {(offer["kind"], offer["name"]): offer for offer in document["offers"]}
    assert by_name["loss", "spread"] == {
        "plugin": "all",
        "kind": "loss",
        "name": "spread",
        "summary": "a softmax",
        "variants": {},
        "options": [{"name": "temperature", "type": "float", "default": 0.1, "help": "of the softmax"}],
    }
    assert {one["name"]: (one["type"], one["default"]) for one in by_name["encoder", "flat"]["options"]} == {
        "bias": ("bool", True),
        "widths": ("tuple[int, ...]", [4]),
    }
    assert by_name["perturbation", "noise"]["options"][0]["type"] == "float | None"
    assert by_name["method", "together"]["options"] == []


class Side(Enum):
    LEFT = "left"


@attrs.frozen
class Places:
    side: Side = option(Side.LEFT, "an enum")
    files: tuple[Path, ...] = option((Path("/a"),), "paths")


def test_json_has_defaults_that_are_enums_or_paths(capsys: pytest.CaptureFixture[str]) -> None:
    point = fake_point("all", clocs_datasets=lambda: [attrs.evolve(tiny(), options=Places)])
    assert main(["plugins", "--json"], [point]) == 0
    (offer,) = json.loads(capsys.readouterr().out)["offers"]
    assert {one["name"]: one["default"] for one in offer["options"]} == {"side": "left", "files": ["/a"]}


def test_json_of_what_is_installed_is_json() -> None:
    done = run_clocs("plugins", "--json")
    assert done.returncode == 0
    assert {plugin["distribution"] for plugin in json.loads(done.stdout)["plugins"]} >= {"clocs"}


def test_the_variants_of_a_method_are_listed_for_people_and_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    """`-o variant=` is of no use to somebody who does not know their names."""
    variants = {"old": Variant(summary="As it was.", presets={})}
    point = fake_point("more", clocs_methods=lambda: [together("varied", variants=variants)])
    assert main(["plugins"], [fake_point("all", **offers()), point]) == 0
    assert "-o variant=old: As it was." in capsys.readouterr().out
    assert main(["plugins", "--json"], [fake_point("all", **offers()), point]) == 0
    document = json.loads(capsys.readouterr().out)
    assert next(one for one in document["offers"] if one["name"] == "varied")["variants"] == {"old": "As it was."}


def say(text: str, result: T) -> T:
    """Print a text, as a plugin might, and return the result."""
    sys.stdout.write(f"{text}\n")
    return result


def test_json_is_json_whatever_plugins_print(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At import, while they make offers or commands, and later, when a command imports the rest of them."""

    class Chatty(FakePoint):
        def load(self) -> Any:
            return say("at import", super().load())

    def late(*_given: object) -> dict[str, object]:
        return say("later", {"api": "x"})

    hooks = {"clocs_datasets": lambda: say("offering", [tiny()]), "clocs_commands": lambda cli: say("commanding", None)}
    monkeypatch.setattr("clocs_core.cli.plugins._document", late)
    assert main(["plugins", "--json"], [Chatty("chatty", fake_module("chatty", **hooks))]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == {"api": "x"}
    assert err.split("\n") == ["at import", "offering", "commanding", "later", ""]
    say("again", None)
    assert capsys.readouterr().out == "again\n"


def test_a_hook_that_returns_none_costs_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugins"], [fake_point("a", clocs_datasets=lambda: None)]) == 0
    assert capsys.readouterr().err.startswith("Warning: clocs_datasets of plugin 'a' (fakes 1.0) returns None")


def test_an_encoder_with_a_sequence_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever is told that a method needs one looks here."""
    able = attrs.evolve(flat("timed"), sequence=True)
    points = [fake_point("all", clocs_encoders=lambda: [flat(), able])]
    assert main(["plugins"], points) == 0
    rows = capsys.readouterr().out.splitlines()
    assert [row.split()[1:] for row in rows[1:]] == [
        ["flat", "one", "layer"],
        ["timed", "one", "layer.", "Has", "a", "sequence."],
    ]
    assert main(["plugins", "--json"], points) == 0
    assert [one["sequence"] for one in json.loads(capsys.readouterr().out)["offers"]] == [False, True]


def test_a_plugin_that_is_slow_to_import_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every command waits for it, and nothing else says for whom."""
    assert main(["plugins"], [fake_point("all", **offers())]) == 0
    assert "to import" not in capsys.readouterr().out
    monkeypatch.setattr("clocs_core.cli.plugins.SLOW", -1.0)
    assert main(["plugins"], [fake_point("all", **offers())]) == 0
    assert "all  (fakes 1.0)  takes 0.0 s to import, in every command" in capsys.readouterr().out
