"""The conformance kit: a good offer of every kind passes, and each flaw fails the check that it should, and no other.

Where one flaw fails several checks the table says so: those rules are about the same thing in different situations.
"""

from __future__ import annotations

import subprocess
import sys
import unittest
from pathlib import Path
from types import SimpleNamespace

import attrs
import fake_offers as fake
import pytest
import torch
from fake_offers import Flaw

from clocs_core import Method, Task, Variant, option
from clocs_core.extend.catalogue import Catalogue, Offered, Shelf
from clocs_core.extend.host import Plugin
from clocs_core.testing import (
    checks_of,
    checks_of_catalogue,
    checks_of_plugins,
    failures,
    synthetic_batch,
    synthetic_record,
)

OWNER = Plugin("fake", "fakes", "1", SimpleNamespace())


def shelf(offer):
    return Shelf(type(offer), (Offered(offer, OWNER),))


CATALOGUE = Catalogue(
    *map(shelf, [fake.DATASET, fake.VIEWS, fake.PERTURBATION, fake.ENCODER, fake.LOSS, fake.OBJECTIVE]),
    *map(shelf, [fake.METHOD, fake.METRIC]),
)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recordings")
    fake.write_recordings(folder)
    return folder


def failing(offer, **given):
    return set(failures(checks_of(offer, **given)))


def test_good_offers_of_every_kind_pass_every_check(root):
    """Or the kit would refuse what the contract allows."""
    checks = checks_of_catalogue(CATALOGUE, {"fake": root})
    assert failures(checks) == {}
    assert {check.offer.split(":")[0] for check in checks} == {
        "dataset", "views", "perturbation", "encoder", "loss", "objective", "method", "metric"
    }  # fmt: skip
    assert len({str(check) for check in checks}) == len(checks)


# -------------------------------------------------------------------------------------------------- every offer


@attrs.frozen
class Required:
    size: str = attrs.field(metadata={"help": "no default"})


@attrs.frozen
class Clinging:
    """Its class can be sent elsewhere, what is made of it cannot."""

    def __reduce__(self):
        raise TypeError("not without me")


@attrs.define
class Mutable:
    size: int = option(1, "a size")


@attrs.frozen
class Helpless:
    size: int = 1


@attrs.frozen
class WrongType:
    size: int = option("large", "a size")


@attrs.frozen
class Odd:
    size: object = option({1: 2}, "a dictionary, which has no TOML here")


def test_a_local_function_fails_the_pickle_check_and_says_what_to_do():
    offer = attrs.evolve(fake.LOSS, build=lambda options: fake.build_loss(options))
    found = failures(checks_of(offer))
    assert set(found) == {"pickle"}
    assert "loss:fake:pickle: expected an offer that pickle can send to a worker process; found" in found["pickle"]
    assert "Use functions defined at the top of a module" in found["pickle"]


OPTIONS_FLAWS = [
    (Mutable, {"options-frozen"}),
    (Helpless, {"options-help"}),
    (WrongType, {"options-file"}),
    (Odd, {"options-file"}),
    (Required, {"options-default"}),
    (Clinging, {"options-pickle"}),
]


@pytest.mark.parametrize(("options", "broken"), OPTIONS_FLAWS)
def test_a_flaw_of_the_options_fails_its_check(options, broken):
    offer = attrs.evolve(fake.METRIC, options=options)
    assert failing(offer) == broken


def test_options_that_pickle_cannot_find_fail_their_check():
    """The class is taken by its name in the other process; here another one has that name."""
    local = attrs.make_class("Mutable", {}, frozen=True)
    local.__module__ = __name__
    assert failing(attrs.evolve(fake.METRIC, options=local)) == {"pickle", "options-pickle"}


@pytest.mark.parametrize("summary", [" spaced", "long " * 30 + "end"])
def test_an_untidy_summary_fails_its_check(summary):
    assert failing(attrs.evolve(fake.METRIC, summary=summary)) == {"summary"}


# ----------------------------------------------------------------------------------------------------- data sets

ISOLATED = {
    "scan-elsewhere",
    "scan-reads-no-signal",
    "load-elsewhere",
    "load-without-torch",
    "load-reads-one",
    "offline",
    "writes-nothing",
}


DECLARED_FLAWS = [
    ({"tasks": (fake.RHYTHM, fake.RHYTHM)}, {"tasks"}),
    ({"tasks": (Task("none", classes=()),)}, {"tasks"}),
    ({"tasks": (Task("twice", classes=("a", "a")),)}, {"tasks"}),
    ({"channels": ("I", "I", "II")}, {"channels"}),
    ({"presets": {"both": ("II", "I"), "bad": ("V9",)}}, {"presets"}),
    ({"presets": {"both": ("II", "II")}}, {"presets"}),
    ({"presets": {"both": ("II", "I"), "I": ("II",)}}, {"presets"}),
    ({"defaults": attrs.evolve(fake.DATASET.defaults, channels="V9")}, {"default-channels"}),
    ({"framing": fake.framing_by_length}, {"framing"}),
]


@pytest.mark.parametrize(("change", "broken"), DECLARED_FLAWS)
def test_a_flaw_of_what_a_data_set_declares_fails_its_check(change, broken):
    """These are found without a file."""
    assert failing(attrs.evolve(fake.DATASET, **change)) == broken


def test_a_data_set_whose_files_say_channels_and_classes_may_declare_neither():
    offer = attrs.evolve(fake.DATASET, channels=(), presets={}, tasks=(Task("any", classes=()),))
    assert failing(offer) == set()


RECORDING_FLAWS = [
    ("empty", {"scan-lists"}),
    ("silent-drop", {"scan-lists"}),
    ("unstable-scan", {"scan-repeats"}),
    ("same-id", {"record-ids"}),
    ("no-patient", {"patient-ids"}),
    ("two-forms", {"patient-form"}),
    ("patient-by-task", {"same-patients"}),
    ("missing-file", {"files"}),
    ("no-files", {"files"}),
    ("large-label", {"labels"}),
    ("bool-label", {"labels"}),
    ("text-label", {"labels"}),
    ("set-label", {"labels"}),
    ("int-for-any-of", {"labels"}),
    ("large-in-set", {"labels"}),
    ("backwards-episode", {"labels"}),
    ("unordered-episodes", {"labels"}),
    ("large-in-episode", {"labels"}),
    ("episodes-per-record", {"labels"}),
    ("other-patient", {"load-agrees"}),
    ("forgets-label", {"load-agrees"}),
    ("long-episode", {"load-agrees"}),
    ("other-channel", {"load-channels"}),
    ("two-units", {"load-unit"}),
    ("complex", {"load-samples"}),
    ("no-sample", {"load-samples", "load-agrees"}),  # nor does an episode lie within no samples
    ("noise", {"load-repeats"}),
]


@pytest.mark.parametrize(("flaw", "broken"), RECORDING_FLAWS)
def test_a_flaw_of_recordings_fails_its_check(root, flaw, broken):
    """Checks that start a process are left out here, to be quick; the next test has them."""
    checks = [check for check in checks_of(fake.DATASET, root=root, options=Flaw(flaw)) if check.name not in ISOLATED]
    assert set(failures(checks)) == broken


PROCESS_FLAWS = [
    ("hash-order", {"scan-elsewhere"}),
    ("reads-signal", {"scan-reads-no-signal"}),
    ("hash-seed", {"load-elsewhere"}),
    ("imports-torch", {"load-without-torch"}),
    ("reads-neighbours", {"load-reads-one"}),
    ("online", {"offline"}),
    ("writes", {"writes-nothing"}),
]


@pytest.mark.parametrize(("flaw", "broken"), PROCESS_FLAWS)
def test_a_flaw_that_only_another_process_shows_fails_its_check(root, flaw, broken):
    """Worker processes hash differently, and import only what loading needs."""
    assert failing(fake.DATASET, root=root, options=Flaw(flaw)) == broken


def test_a_scan_that_gives_no_listing_fails_with_the_type_that_it_gave(root):
    """Nothing that needs entries can be looked at then: the others are skipped, so that one fault is told once."""
    found = failures(checks_of(fake.DATASET, root=root, options=Flaw("no-listing")))
    assert set(found) == {"scan-lists"}
    assert "expected a Listing; found list" in found["scan-lists"]


def test_without_a_root_the_checks_of_recordings_are_skipped_aloud():
    """A check that was not made must not look like one that passed."""
    checks = {check.name: check for check in checks_of(fake.DATASET)}
    assert "scan-lists" not in checks
    with pytest.raises(unittest.SkipTest, match=r"dataset:fake: no root was given, so 21 checks"):
        checks["recordings"].run()


# ---------------------------------------------------------------------------------------------- views and signals


VIEWS_FLAWS = [
    ("noisy", set()),  # drawing from the generator is allowed
    ("impossible-needs", {"needs"}),
    ("lost-sample", {"shape"}),
    ("double", {"dtype"}),
    ("device", {"device"}),
    ("device-by-name", {"device"}),
    ("divides", {"finite"}),
    ("in-place", {"batch-unchanged"}),
    ("entropy", {"seeded", "order-of-batch"}),  # what differs every time differs in another order too
    ("entropy-and-draws", {"seeded"}),
    ("global-randomness", {"own-randomness"}),
    ("numpy-randomness", {"own-randomness"}),
    ("order", {"order-of-batch"}),
    ("item", {"no-host-sync"}),
    ("mask", {"no-host-sync"}),
    ("target", {"target"}),
    ("encoders", {"encoder-of-view"}),
    ("pair-of-itself", {"pairs"}),
    ("pair-twice", {"pairs"}),
    ("pair-beyond", {"pairs"}),
    ("one-each-of-two", {"perturb"}),
]


@pytest.mark.parametrize(("flaw", "broken"), VIEWS_FLAWS)
def test_a_flaw_of_views_fails_its_check(flaw, broken):
    assert failing(fake.VIEWS, options=Flaw(flaw)) == broken


def test_needs_of_another_type_fail_their_check_before_any_other_can_be_made():
    found = failures(checks_of(fake.VIEWS, options=Flaw("no-needs")))
    assert set(found) == {"needs"}
    assert "expected Needs; found 2" in found["needs"]


PERTURBATION_FLAWS = [
    ("unit", {"units"}),
    ("four-dimensions", {"shape"}),
    ("single", {"dtype"}),
    ("device", {"device"}),
    ("device-by-name", {"device"}),
    ("divides", {"finite"}),
    ("in-place", {"signal-unchanged"}),
    ("entropy", {"seeded"}),
    ("batch-deviation", {"rows-are-independent"}),
    ("global-randomness", {"own-randomness"}),
    ("draws-nothing", {"says-whether-it-draws"}),
    ("item", {"no-host-sync"}),
]


@pytest.mark.parametrize(("flaw", "broken"), PERTURBATION_FLAWS)
def test_a_flaw_of_a_perturbation_fails_its_check(flaw, broken):
    assert failing(fake.PERTURBATION, options=Flaw(flaw)) == broken


# --------------------------------------------------------------------------------- encoders, losses and objectives


ENCODER_FLAWS = [
    ("one-channel", {"shape"}),
    ("dim", {"shape"}),
    ("silent", {"short-frames"}),
    ("short", {"short-frames"}),
    ("double", {"dtype"}),
    ("divides", {"finite", "gradient"}),
    ("divides-in-evaluation", {"finite"}),
    ("unused", {"gradient"}),
    ("detached", {"gradient"}),
    ("batch-norm", {"rows-are-independent"}),
    ("dropout", {"eval-is-deterministic", "rows-are-independent", "state"}),  # all compare two encodings
    ("jitter", {"eval-is-deterministic"}),
    ("hidden-number", {"state"}),
    ("hidden-state", {"state", "device"}),  # what is not saved does not move to another device either
    ("own-seed", {"seeded"}),
    ("in-place", {"signal-unchanged"}),
    ("device", {"device"}),
    ("device-by-name", {"device"}),
    ("item", {"no-host-sync"}),
]


@pytest.mark.parametrize(("flaw", "broken"), ENCODER_FLAWS)
def test_a_flaw_of_an_encoder_fails_its_check(flaw, broken):
    assert failing(fake.ENCODER, options=Flaw(flaw)) == broken


FINITE = {"finite", "no-patient-twice", "one-patient", "batch-of-one", "zero-embeddings"}


LOSS_FLAWS = [
    ("vector", {"scalar"}),
    ("double", {"scalar"}),
    ("infinite", FINITE),
    ("infinite-for-pairs", {"finite"}),
    ("no-other", {"no-patient-twice", "batch-of-one"}),  # alone in a batch, nobody comes twice
    ("no-other-of-many", {"no-patient-twice"}),
    ("no-stranger", {"one-patient", "batch-of-one"}),  # nor is there a stranger
    ("no-stranger-of-many", {"one-patient"}),
    ("batch-minus-one", {"batch-of-one"}),
    ("divides", {"zero-embeddings"}),
    ("one-view", {"gradient"}),
    ("position", {"order-of-batch"}),
    ("id", {"names-of-patients"}),
    ("in-place", {"input-unchanged"}),
    ("random", {"pure"}),
    ("device", {"device"}),
    ("device-by-name", {"device"}),
    ("item", {"no-host-sync"}),
]


@pytest.mark.parametrize(("flaw", "broken"), LOSS_FLAWS)
def test_a_flaw_of_a_loss_fails_its_check(flaw, broken):
    assert failing(fake.LOSS, options=Flaw(flaw)) == broken


OBJECTIVE_FLAWS = [
    ("vector", {"scalar"}),
    ("infinite", {"finite"}),
    ("detached", {"reaches-encoder"}),
    ("target-wants-gradient", {"own-gradient"}),
    ("shares", {"own-parameters"}),
    ("hidden-number", {"state"}),
    ("hidden-state", {"state", "device"}),  # what is not saved does not move to another device either
    ("own-seed", {"seeded"}),
    ("in-place", {"views-unchanged"}),
    ("device", {"device"}),
    ("device-by-name", {"device"}),
    ("item", {"no-host-sync"}),
    ("divides-by-zero", {"after-step-finite"}),
    ("changes-encoder", {"after-step-changes-itself"}),
    ("new-tensor", {"after-step-in-place"}),
    ("item-after-step", {"after-step-no-host-sync"}),
]


@pytest.mark.parametrize(("flaw", "broken"), OBJECTIVE_FLAWS)
def test_a_flaw_of_an_objective_fails_its_check(flaw, broken):
    assert failing(fake.OBJECTIVE, options=Flaw(flaw)) == broken


# -------------------------------------------------------------------------------------------- methods and metrics


METHOD_FLAWS = [
    ({"encoder": "fak"}, {"parts"}),  # what needs it is skipped, so that one fault is told once
    ({"presets": {"veiws": {"flaw": ""}}}, {"preset-tables"}),
    ({"presets": {"views": {"flaws": ""}}}, {"presets"}),
    ({"presets": {"train": {"epochs": "many"}}}, {"presets"}),
    ({"presets": {"loss": {"flaw": "infinite"}}}, {"one-step"}),
    ({"variants": {"old": Variant(summary="s", presets={"veiws": {}})}}, {"preset-tables"}),
    ({"variants": {"old": Variant(summary="s", presets={"views": {"flaws": ""}})}}, {"presets"}),
    ({"on_dataset": {"tiny": {"run": {"perturbation": []}}}}, {"presets"}),
]


@pytest.mark.parametrize(("change", "broken"), METHOD_FLAWS)
def test_a_flaw_of_a_method_fails_its_check(change, broken):
    assert failing(attrs.evolve(fake.METHOD, **change), catalogue=CATALOGUE) == broken


def test_without_a_catalogue_a_method_says_that_its_parts_were_not_looked_for():
    checks = {check.name: check for check in checks_of(fake.METHOD)}
    with pytest.raises(unittest.SkipTest, match="pass catalogue="):
        checks["parts"].run()


def test_an_objective_is_tried_on_the_views_of_a_method_that_uses_it():
    """Some objectives predict a target that only their own views have."""
    method = Method(name="other", summary="s", views="fake", encoder="fake", objective="fake",
                    presets={"views": {"flaw": "divides"}})  # fmt: skip
    catalogue = attrs.evolve(CATALOGUE, methods=shelf(method))
    assert "finite" in failing(fake.OBJECTIVE, catalogue=catalogue)


METRIC_FLAWS = [
    ("error", {"perfect-is-best"}),
    ("sum", {"weight-scale"}),
    ("unweighted", {"weight-zero", "weight-counts"}),  # both say what a weight means
    ("root", {"weight-counts"}),
    ("counts-zero", {"weight-zero"}),
    ("place", {"order-of-rows", "weight-counts", "weight-zero"}),  # where rows are left out or added, places move
    ("first-row", {"order-of-rows"}),
    ("single-precision", {"number"}),
    ("random", {"pure"}),
    ("absent-class", {"absent-class"}),
    ("in-place", {"arguments-unchanged"}),
]


@pytest.mark.parametrize(("flaw", "broken"), METRIC_FLAWS)
def test_a_flaw_of_a_metric_fails_its_check(flaw, broken):
    assert failing(attrs.evolve(fake.METRIC, score=fake.Score(flaw))) == broken


def test_a_score_that_is_no_number_fails_its_check_and_most_others():
    assert {"number", "absent-class"} <= failing(attrs.evolve(fake.METRIC, score=fake.Score("text")))


METRIC_TASKS = [(("regression",), {"tasks"}), (["one_of"], {"tasks"})]


@pytest.mark.parametrize(("tasks", "broken"), METRIC_TASKS)
def test_a_metric_must_name_kinds_of_task_that_exist(tasks, broken):
    """In a tuple, which cannot change."""
    assert failing(attrs.evolve(fake.METRIC, tasks=tasks)) == broken


# ------------------------------------------------------------------------------------------------------- the lot

TABLES = {
    "dataset": [DECLARED_FLAWS, RECORDING_FLAWS, PROCESS_FLAWS],
    "views": [VIEWS_FLAWS],
    "perturbation": [PERTURBATION_FLAWS],
    "encoder": [ENCODER_FLAWS],
    "loss": [LOSS_FLAWS],
    "objective": [OBJECTIVE_FLAWS],
    "method": [METHOD_FLAWS],
    "metric": [METRIC_FLAWS, METRIC_TASKS],
}
ANY_KIND = {"summary", "pickle"}  # each has a test of its own above, in which it fails alone
SLOW = {"quick", "load-quick"}


@pytest.mark.parametrize(
    "offer",
    [fake.DATASET, fake.VIEWS, fake.PERTURBATION, fake.ENCODER, fake.LOSS, fake.OBJECTIVE, fake.METRIC],
    ids=lambda offer: offer.kind,
)
def test_an_offer_that_takes_its_time_fails_its_check(offer, root, monkeypatch):
    """Milliseconds stand for what is too long; time changes nothing for the other checks, which are left out."""
    monkeypatch.setattr("clocs_core.testing.pace.BUDGET", 0.002)
    if offer.kind == "metric":
        offer, given = attrs.evolve(offer, score=fake.Score("slow")), {}
    else:
        given = {"options": Flaw("slow")} | ({"root": root} if offer.kind == "dataset" else {})
    (found,) = failures(check for check in checks_of(offer, **given) if check.name in SLOW).values()
    assert "within 0.002 s of processor time; found 0.0" in found


CONFORMANCE = Path(__file__).parents[2] / "docs" / "conformance.md"


def test_the_page_of_rules_lists_every_check_of_every_kind_with_its_rule(root):
    """Whoever meets a failure looks there; a rule that is added or reworded must be added there."""
    every = {check.name for check in checks_of(fake.METHOD)} - {"parts"}
    expected = {kind: [] for kind in ("plugin", "offer", *TABLES)}
    for check in [*checks_of_plugins(["fake"]), *checks_of_catalogue(CATALOGUE, {"fake": root})]:
        kind = "offer" if check.name in every else check.offer.split(":")[0]
        line = f"| `{check.name}` | {check.rule} |"
        expected[kind] += [line] if line not in expected[kind] else []
    _, *sections = CONFORMANCE.read_text(encoding="utf-8").split("\n## ")
    found = {text.split("\n")[0]: [line for line in text.splitlines() if line.startswith("| `")] for text in sections}
    assert found == expected, "\n\n".join("\n".join([f"## {kind}", *rows]) for kind, rows in expected.items())


def test_every_check_fails_alone_for_a_flaw_that_it_is_there_for(root):
    """A check that nothing here can fail is one that nobody has seen work; one that never fails alone is too wide."""
    for check in checks_of_catalogue(CATALOGUE, {"fake": root}):
        tables = [*TABLES[check.offer.split(":")[0]], OPTIONS_FLAWS]
        alone = {name for table in tables for _, broken in table if len(broken) == 1 for name in broken}
        assert check.name in alone | ANY_KIND | SLOW, str(check)


# --------------------------------------------------------------------------------------------- plugins' modules

MODULES = {
    "good_card": ("x = 1", None),
    "heavy_card": ("import triton", "light"),
    "slow_card": ("import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass", "quick"),
    "online_card": ("import socket\nsocket.socket().close()", "no-socket"),
    "writing_card": ("import pathlib\npathlib.Path(__file__).with_suffix('.log').write_text('x')", "writes-nothing"),
    "broken_card": ("raise SystemExit('no licence')", "imports"),
    "last_card": ("import triton", "light"),
    "future_card": ("CLOCS_API = '99.0'", "api"),
}


def test_a_flaw_of_a_plugins_module_fails_its_check(tmp_path, monkeypatch):
    """The last one imports what another one before it has imported: sharing an interpreter must not hide it."""
    (tmp_path / "triton.py").write_text("")  # heavy by its name, quick to import
    for name, (text, _) in MODULES.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    checks = checks_of_plugins(MODULES, budget=0.25)
    for name, (_, broken) in MODULES.items():
        mine = [check for check in checks if check.offer == f"plugin:{name}"]
        assert set(failures(mine)) == ({broken} if broken else set()), name
    assert {check.name for check in checks} == {broken for _, broken in MODULES.values() if broken}


# --------------------------------------------------------------------------------------------- synthetic material


def test_synthetic_material_is_seeded_and_of_the_shape_that_was_asked_for():
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
