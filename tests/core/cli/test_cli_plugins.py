"""`clocs plugins`, and the options that stand anywhere on the line."""

from __future__ import annotations

import json

import pytest
from clocs_process import run_clocs
from fake_offers import offers, tiny, together
from fake_plugins import FakePoint, fake_point

from clocs_core import API_VERSION, Variant, __version__
from clocs_core.cli import main

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
    assert document["plugins"] == [{"name": "all", "distribution": "fakes", "version": "1.0"}]
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
