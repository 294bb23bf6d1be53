"""The conformance kit: good offers of every kind pass, and each mutant fails the checks that it should, and no other.

The mutants are in `flawed_offers.py`, in one table. Time is what a clock says that the test moves, so that slow mutants
take none; what needs a fresh process is tried in forks of one, which are as fresh as the kit's own and quicker.
"""

from __future__ import annotations

import subprocess
import sys
import unittest
from pathlib import Path

import attrs
import fake_clock
import flawed_offers as fake
import pytest
import torch
from broken_rules import CATALOGUE, MUTANTS, shelf
from flawed_offers import Flaw
from nursery import open_nursery

from clocs_core import Method, Task
from clocs_core.testing import (
    ConformanceError,
    checks_of,
    checks_of_catalogue,
    checks_of_plugins,
    failures,
    synthetic_batch,
    synthetic_record,
)
from clocs_core.testing.every_offer import checks_of_every_offer
from clocs_core.testing.pace import expect_quick

EVERY = {check.name for check in checks_of_every_offer(fake.METRIC)}  # whatever the kind of offer


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recordings")
    fake.write_recordings(folder)
    return folder


@pytest.fixture(scope="module")
def nursery():
    with open_nursery() as run:
        yield run


def checks_of_cards(texts, folder, monkeypatch):
    """The checks of plugins' modules, given by name and text."""
    (folder / "triton.py").write_text("")  # heavy by its name, quick to import
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(folder)
    return checks_of_plugins(texts, clock=fake_clock.now)


def every_check(root):
    """All checks of the suite, for good offers and a module, each with the kind of thing that it is for."""
    checks = [*checks_of_plugins(["fake"]), *checks_of_catalogue(CATALOGUE, {"fake": root})]
    return [("offer" if check.name in EVERY else check.offer.split(":")[0], check) for check in checks]


def test_good_offers_of_every_kind_pass_every_check(root):
    """Or the kit would refuse what the contract allows."""
    checks = checks_of_catalogue(CATALOGUE, {"fake": root})
    assert failures(checks) == {}
    assert {check.offer.split(":")[0] for check in checks} == {
        "dataset", "views", "perturbation", "encoder", "loss", "objective", "method", "metric", "protocol",
        "section", "listener", "grid", "executor",
    }  # fmt: skip
    assert len({str(check) for check in checks}) == len(checks)


# --------------------------------------------------------------------------------------------------- the mutants


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_mutant_fails_the_checks_of_the_rules_that_it_breaks_and_no_other(
    mutant, root, nursery, tmp_path, monkeypatch
):
    """All checks of what it is are made. One that lets it pass is blind; one that fails beside it sends its author
    looking in the wrong place."""
    for module in ("recordings", "plugins"):
        monkeypatch.setattr(f"clocs_core.testing.{module}.run_isolated", nursery)
    if mutant.kind == "plugin":
        checks = checks_of_cards({f"{mutant.name}_card": mutant.subject}, tmp_path, monkeypatch)
    else:
        given = {"root": root, "options": mutant.options, "catalogue": CATALOGUE}
        checks = checks_of(mutant.subject, **given, clock=fake_clock.now)
    found = failures(checks)
    assert set(found) == mutant.broken
    assert mutant.says in " ".join(found.values())


def test_every_check_of_the_suite_fails_alone_for_a_mutant(root):
    """A check that no mutant fails is one that nobody has seen work; one that never fails alone is too wide."""
    alone = {(mutant.kind, name) for mutant in MUTANTS if len(mutant.broken) == 1 for name in mutant.broken}
    alone |= {("offer", name) for _, name in alone & {("metric", name) for name in EVERY}}
    assert {(kind, check.name) for kind, check in every_check(root)} - alone == set()


def test_no_two_mutants_have_the_same_name():
    """The second would be taken for the first in a report."""
    assert len(set(map(str, MUTANTS))) == len(MUTANTS)


def test_a_mutant_of_a_data_set_fails_in_an_interpreter_of_its_own_too(root):
    """The mutants above are tried in forks, a user's data set in a process of its own: it hashes otherwise too."""
    found = failures(checks_of(fake.DATASET, root=root, options=Flaw("hash-order")))
    assert set(found) == {"scan-elsewhere"}


def test_sharing_an_interpreter_does_not_hide_what_a_later_module_imports(tmp_path, monkeypatch):
    """Modules are imported one after the other while all is well; the last finds what the one before has imported."""
    texts = {"good_card": "x = 1", "first_card": "import triton", "second_card": "import triton"}
    checks = checks_of_cards(texts, tmp_path, monkeypatch)
    failed = {str(check) for check in checks if failures([check])}
    assert failed == {"plugin:first_card:light", "plugin:second_card:light"}


# ------------------------------------------------------------------------------------------------- what is allowed


def test_views_may_draw_from_the_generator_that_they_are_given():
    assert failures(checks_of(fake.VIEWS, options=Flaw("noisy"))) == {}


def test_a_data_set_whose_files_say_channels_and_classes_may_declare_neither():
    offer = attrs.evolve(fake.DATASET, channels=(), presets={}, tasks=(Task("any", classes=()),))
    assert failures(checks_of(offer)) == {}


def test_the_first_of_two_calls_may_take_long():
    """It may import what it needs, once; the budget is for what every batch pays."""
    waits = iter([60.0, 2.0])
    expect_quick(lambda: fake_clock.advance(next(waits)), "a call", "Hurry.", fake_clock.now)
    waits = iter([60.0, 2.5])
    with pytest.raises(ConformanceError, match=r"a call within 2.0 s of processor time; found 2.50 s. Hurry."):
        expect_quick(lambda: fake_clock.advance(next(waits)), "a call", "Hurry.", fake_clock.now)


# --------------------------------------------------------------------------------------------- what was not looked at


def test_without_a_root_the_checks_of_recordings_are_skipped_aloud():
    """A check that was not made must not look like one that passed."""
    checks = {check.name: check for check in checks_of(fake.DATASET)}
    assert "scan-lists" not in checks
    with pytest.raises(unittest.SkipTest, match=r"dataset:fake: no root was given, so 22 checks"):
        checks["recordings"].run()


def test_without_a_catalogue_a_method_says_that_its_parts_were_not_looked_for():
    checks = {check.name: check for check in checks_of(fake.METHOD)}
    with pytest.raises(unittest.SkipTest, match="pass catalogue="):
        checks["parts"].run()


def test_an_objective_is_tried_on_the_views_of_a_method_that_uses_it():
    """Some objectives predict a target that only their own views have."""
    method = Method(name="other", summary="s", views="fake", encoder="fake", objective="fake",
                    presets={"views": {"flaw": "divides"}})  # fmt: skip
    catalogue = attrs.evolve(CATALOGUE, methods=shelf(method))
    assert "finite" in failures(checks_of(fake.OBJECTIVE, catalogue=catalogue))


def test_an_objective_that_takes_embeddings_alone_may_say_so():
    offer = attrs.evolve(fake.OBJECTIVE, of_embeddings=True)
    assert failures(checks_of(offer, options=Flaw("of-embeddings"))) == {}


@pytest.mark.parametrize("offer", [fake.LOSS, fake.OBJECTIVE])
def test_what_computes_its_share_of_several_processes_passes(offer):
    assert failures(checks_of(offer, options=Flaw("ranks"))) == {}


@attrs.frozen
class Layered:
    """Build an objective for encoders that have a layer of this name."""

    layer: str

    def __call__(self, options, setup):
        getattr(setup.encoder, self.layer)
        return fake.build_objective(Flaw(""), setup)


@pytest.mark.parametrize(("layer", "fits"), [("convolution", True), ("attention", False)])
def test_an_objective_is_tried_with_the_encoder_of_a_method_that_uses_it(layer, fits):
    """Some objectives read layers that only their own encoder has."""
    method = Method(name="other", summary="s", views="fake", encoder="fake", objective="fake")
    offer = attrs.evolve(fake.OBJECTIVE, build=Layered(layer))
    catalogue = attrs.evolve(CATALOGUE, methods=shelf(method), objectives=shelf(offer))
    assert ("scalar" in failures(checks_of(offer, catalogue=catalogue))) is not fits


# ------------------------------------------------------------------------------------------------ the page of rules

CONFORMANCE = Path(__file__).parents[3] / "docs" / "conformance.md"
KINDS = ("plugin", "offer", "dataset", "views", "perturbation", "encoder", "loss", "objective", "method", "metric")
KINDS += ("protocol", "section", "listener", "grid")  # an executor has no rules of its own


def test_the_page_of_rules_lists_every_check_of_every_kind_with_its_rule(root):
    """Whoever meets a failure looks there; a rule that is added or reworded must be added there."""
    expected = {kind: [] for kind in KINDS}
    for kind, check in every_check(root):
        line = f"| `{check.name}` | {check.rule} |"
        expected[kind] += [line] if line not in expected[kind] else []
    _, *sections = CONFORMANCE.read_text(encoding="utf-8").split("\n## ")
    found = {text.split("\n")[0]: [line for line in text.splitlines() if line.startswith("| `")] for text in sections}
    assert found == expected, "\n\n".join("\n".join([f"## {kind}", *rows]) for kind, rows in expected.items())


# ---------------------------------------------------------------------------------------------- synthetic signals


def test_synthetic_signals_are_seeded_and_of_the_shape_that_was_asked_for():
    batch = synthetic_batch(5, 2, 3, 100, patients=2, seed=4)
    assert tuple(batch.signal.shape) == (5, 2, 3, 100)
    assert batch.patient.tolist() == [0, 1, 0, 1, 0]
    assert torch.equal(batch.signal, synthetic_batch(5, 2, 3, 100, patients=2, seed=4).signal)
    assert not torch.equal(batch.signal, synthetic_batch(5, 2, 3, 100, patients=2, seed=5).signal)
    record = synthetic_record(channels=("II", "V2"), samples=300, label=1, seed=1)
    assert record.samples.shape == (2, 300)
    assert (record.samples == synthetic_record(channels=("II", "V2"), samples=300, seed=1).samples).all()


def test_importing_the_kit_imports_neither_torch_nor_pytest():
    """A fake data set may use `synthetic_record` in a worker process."""
    code = "import sys, clocs_core.testing; print([n for n in ('torch', 'pytest', 'scipy') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
