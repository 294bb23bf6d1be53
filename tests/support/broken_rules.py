"""Break every rule of the conformance suite: a table of flawed offers and modules, with the checks that must fail.

Most flaws fail one check. Where one fails several, it breaks several rules, and a comment says why they go together.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

import attrs
import flawed_offers as fake
from flawed_offers import Flaw

from clocs_core import Column, Task, Variant, option
from clocs_core.contracts.offers import Offer
from clocs_core.plugins.catalogue import Catalogue, Offered, Shelf
from clocs_core.plugins.host import Plugin

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

OWNER = Plugin("fake", "fakes", "1", ModuleType("fake"))


def shelf(offer: Offer) -> Shelf[Any]:
    return Shelf(type(offer), (Offered(offer, OWNER),))


CATALOGUE = Catalogue(
    *map(shelf, [fake.DATASET, fake.VIEWS, fake.PERTURBATION, fake.ENCODER, fake.LOSS, fake.OBJECTIVE]),
    *map(shelf, [fake.METHOD, fake.METRIC, fake.PROTOCOL, fake.SECTION, fake.TRACKER, fake.GRID, fake.EXECUTOR]),
)


def _names(words: str) -> frozenset[str]:
    return frozenset(words.split())


@attrs.frozen
class Mutant:
    """A flawed offer, or the text of a flawed plugin module: exactly these checks must fail.

    says: a part of the failure messages.
    """

    name: str
    subject: Offer | str
    broken: frozenset[str] = attrs.field(converter=_names)
    options: object = None
    says: str = ""

    @property
    def kind(self) -> str:
        return "plugin" if isinstance(self.subject, str) else self.subject.kind

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


def by_flaw(offer: Offer, table: Mapping[str, str]) -> list[Mutant]:
    """Make mutants of an offer whose option `flaw` breaks it."""
    return [Mutant(flaw, offer, broken, Flaw(flaw)) for flaw, broken in table.items()]


def by_score(table: Mapping[str, str]) -> list[Mutant]:
    """Make mutants of the metric, which has no options."""
    return [Mutant(flaw, changed(fake.METRIC, score=fake.Score(flaw)), broken) for flaw, broken in table.items()]


def changed(offer: Offer, **fields: Any) -> Offer:
    return attrs.evolve(offer, **fields)


def slow(offer: Offer, broken: str, options: object = Flaw("slow")) -> Mutant:
    return Mutant("slow", offer, broken, options, "within 2.0 s of processor time; found 3.00 s")


# -------------------------------------------------------------------------------------------------- every offer


@attrs.frozen
class Required:
    size: str = attrs.field(metadata={"help": "no default"})


@attrs.frozen
class Clinging:
    """A class that can be pickled, but its instances cannot."""

    def __reduce__(self) -> NoReturn:
        raise TypeError("not without me")


@attrs.define
class Mutable:
    size: int = option(1, "a size")


@attrs.frozen
class Helpless:
    size: int = 1


@attrs.frozen
class WrongType:
    size: int = option("large", "a size")  # type: ignore[assignment]  # the flaw


@attrs.frozen
class Odd:
    size: object = option({1: 2}, "a dictionary, which has no TOML here")


# A class is taken by its name in another process; here that name belongs to another one.
MISTAKEN = attrs.make_class("Mutable", {}, frozen=True)
MISTAKEN.__module__ = __name__


@attrs.frozen(eq=False)
class Singular:
    """A score that equals only itself, and so differs from its copy that returns from another process."""

    def __call__(
        self, probability: NDArray[np.float64], label: NDArray[np.int64], weight: NDArray[np.float64]
    ) -> float:
        return fake.METRIC.score(probability, label, weight)


def by_options(options: type, broken: str) -> Mutant:
    return Mutant(f"options-{options.__name__}", changed(fake.METRIC, options=options), broken)


OFFERS = [
    Mutant("summary-spaced", changed(fake.METRIC, summary=" spaced"), "summary"),
    Mutant("summary-long", changed(fake.METRIC, summary="long " * 30 + "end"), "summary"),
    Mutant(
        "lambda",
        changed(fake.METRIC, score=lambda *rows: fake.METRIC.score(*rows)),
        "pickle",
        says="Use functions defined at the top of a module",
    ),
    Mutant(
        "unequal",
        changed(fake.METRIC, score=Singular()),
        "pickle",
        says="metric:fake:pickle: expected an equal offer after pickling; found",
    ),
    by_options(Mutable, "options-frozen"),
    by_options(Helpless, "options-help"),
    by_options(WrongType, "options-file"),
    by_options(Odd, "options-file"),
    by_options(Required, "options-default"),
    by_options(Clinging, "options-pickle"),
    Mutant("options-mistaken", changed(fake.METRIC, options=MISTAKEN), "pickle options-pickle"),  # the class is in both
]

# ----------------------------------------------------------------------------------------------------- data sets


def presets(**added: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    return {"both": ("II", "I")} | added


AGE, SEX, REMARK = fake.DATASET.columns

DATASETS = [
    Mutant("task-twice", changed(fake.DATASET, tasks=(fake.RHYTHM, fake.RHYTHM)), "tasks"),
    Mutant("no-classes", changed(fake.DATASET, tasks=(Task("rhythm", classes=()),)), "tasks"),
    Mutant("class-twice", changed(fake.DATASET, tasks=(Task("rhythm", classes=("a", "b", "b")),)), "tasks"),
    Mutant("channel-twice", changed(fake.DATASET, channels=("I", "I", "II")), "channels"),
    Mutant("preset-beyond", changed(fake.DATASET, presets=presets(bad=("V9",))), "presets"),
    Mutant("preset-repeats", changed(fake.DATASET, presets=presets(both=("II", "II"))), "presets"),
    Mutant("preset-hides-channel", changed(fake.DATASET, presets=presets(I=("II",))), "presets"),
    Mutant(
        "default-beyond",
        changed(fake.DATASET, defaults=attrs.evolve(fake.DATASET.defaults, channels="V9")),
        "default-channels",
    ),
    Mutant("two-lengths", changed(fake.DATASET, framing=fake.framing_by_length), "framing"),
    # Nothing that needs entries can be looked at then: the others are skipped, so that one fault is told once.
    Mutant("no-listing", fake.DATASET, "scan-lists", Flaw("no-listing"), "expected a Listing; found list"),
    Mutant("column-twice", changed(fake.DATASET, columns=(*fake.DATASET.columns, Column("age"))), "columns"),
    Mutant("no-sexes", changed(fake.DATASET, columns=(AGE, Column("sex", "category"), REMARK)), "columns about"),
    Mutant("odd-classes", changed(fake.DATASET, columns=(Column("age", "number", ("a", "b")), SEX, REMARK)), "columns"),
    slow(fake.DATASET, "load-quick"),
    *by_flaw(
        fake.DATASET,
        {
            "empty": "scan-lists",
            "silent-drop": "scan-lists",
            "unstable-scan": "scan-repeats",
            "same-id": "record-ids",
            "no-patient": "patient-ids",
            "two-forms": "patient-form",
            "patient-by-task": "same-patients",
            "about-beyond": "about",
            "about-text": "about",
            "about-class": "about",
            "about-infinite": "about",
            "missing-file": "files",
            "no-files": "files",
            "large-label": "labels",
            "bool-label": "labels",
            "text-label": "labels",
            "set-label": "labels",
            "int-for-any-of": "labels",
            "large-in-set": "labels",
            "backwards-episode": "labels",
            "unordered-episodes": "labels",
            "large-in-episode": "labels",
            "set-in-episode": "labels",
            "large-in-episode-set": "labels",
            "text-in-episode-set": "labels",
            "episodes-per-record": "labels",
            "other-patient": "load-agrees",
            "forgets-label": "load-agrees",
            "long-episode": "load-agrees",
            "other-channel": "load-channels",
            "two-units": "load-unit",
            "complex": "load-samples",
            "no-sample": "load-samples",
            "noise": "load-repeats",
            "hash-order": "scan-elsewhere",
            "reads-signal": "scan-reads-no-signal",
            "hash-seed": "load-elsewhere",
            "imports-torch": "load-without-torch",
            "reads-neighbours": "load-reads-one",
            "online": "offline",
            "writes": "writes-nothing",
        },
    ),
]

# ---------------------------------------------------------------------------------------------- views and signals

VIEWS = [
    Mutant("no-needs", fake.VIEWS, "needs", Flaw("no-needs"), "expected Needs; found 2"),
    slow(fake.VIEWS, "quick"),
    *by_flaw(
        fake.VIEWS,
        {
            "impossible-needs": "needs",
            "needs-text": "needs",
            "lost-sample": "shape",
            "double": "dtype",
            "device": "device",
            "device-by-name": "device",
            "divides": "finite",
            "in-place": "batch-unchanged",
            "entropy": "seeded",
            "entropy-and-draws": "seeded",
            "global-randomness": "own-randomness",
            "numpy-randomness": "own-randomness",
            "order": "order-of-batch",
            "item": "no-host-sync",
            "mask": "no-host-sync",
            "target": "target",
            "encoders": "encoder-of-view",
            "pair-of-itself": "pairs",
            "pair-twice": "pairs",
            "pair-beyond": "pairs",
            "one-each-of-two": "perturb",
        },
    ),
]

PERTURBATIONS = [
    slow(fake.PERTURBATION, "quick"),
    *by_flaw(
        fake.PERTURBATION,
        {
            "unit": "units",
            "four-dimensions": "shape",
            "single": "dtype",
            "device": "device",
            "device-by-name": "device",
            "divides": "finite",
            "in-place": "signal-unchanged",
            "entropy": "seeded",
            "batch-deviation": "rows-are-independent",
            "global-randomness": "own-randomness",
            "draws-nothing": "says-whether-it-draws",
            "item": "no-host-sync",
        },
    ),
    *by_flaw(
        fake.HUM,
        dict.fromkeys(("no-rate", "silent-rate", "one-rate", "drops-channel"), "signal-facts"),
    ),
]

# --------------------------------------------------------------------------------- encoders, losses and objectives

ENCODERS = [
    slow(fake.ENCODER, "quick"),
    *by_flaw(
        fake.ENCODER,
        {
            "one-channel": "shape sequence-shape",  # every use of several channels fails
            "dim": "shape",
            "silent": "short-frames",
            "short": "short-frames",
            "double": "dtype",
            "divides": "finite",
            "divides-in-evaluation": "finite",
            "unused": "gradient",
            "detached": "gradient",
            "edge": "gradient",
            "batch-norm": "rows-are-independent",
            "dropout": "eval-is-deterministic",
            "jitter": "eval-is-deterministic",
            "hidden-number": "state",
            "hidden-state": "state device",  # what is not saved does not move to another device either
            "own-seed": "seeded",
            "in-place": "signal-unchanged",
            "device": "device",
            "device-by-name": "device",
            "item": "no-host-sync",
            "width": "sequence-shape sequence-stride",  # nothing can be compared with it
            "other-stride": "sequence-shape sequence-stride",
            "sequence-mean": "sequence-shape",
            "sequence-double": "sequence-shape",
            "sequence-cut": "sequence-shape",
            "sequence-backwards": "sequence-stride",
            "sequence-ahead": "sequence-causal",
            "sequence-batch": "sequence-rows-are-independent",
            "sequence-dropout": "sequence-eval-is-deterministic",
            "sequence-other": "sequence-gives-representation",
            "sequence-detached": "sequence-gradient",
            "sequence-device": "sequence-device",
            "sequence-item": "sequence-no-host-sync",
        },
    ),
]

LOSSES = [
    slow(fake.LOSS, "quick"),
    *by_flaw(
        fake.LOSS,
        {
            "vector": "scalar",
            "double": "scalar",
            "infinite": "finite no-patient-twice one-patient batch-of-one zero-embeddings",  # whatever it is given
            "infinite-for-pairs": "finite",
            "no-other": "no-patient-twice batch-of-one",  # alone in a batch, nobody comes twice
            "no-other-of-many": "no-patient-twice",
            "no-stranger": "one-patient batch-of-one",  # nor is there a stranger
            "no-stranger-of-many": "one-patient",
            "batch-minus-one": "batch-of-one",
            "divides": "zero-embeddings",
            "one-view": "gradient",
            "position": "order-of-batch",
            "id": "names-of-patients",
            "in-place": "input-unchanged",
            "random": "pure",
            "ranks-detached": "ranks",
            "ranks-twice": "ranks",
            "device": "device",
            "device-by-name": "device",
            "item": "no-host-sync",
        },
    ),
]

OBJECTIVES = [
    slow(fake.OBJECTIVE, "quick"),
    *by_flaw(
        changed(fake.OBJECTIVE, of_embeddings=True),
        {"encodes-other": "of-embeddings", "reads-samples": "of-embeddings"},
    ),
    *by_flaw(
        fake.OBJECTIVE,
        {
            "vector": "scalar",
            "infinite": "finite",
            "component-vector": "components",
            "component-number": "components",
            "components-list": "components",
            "ranks-alike": "ranks",
            "detached": "reaches-encoder",
            "target-wants-gradient": "own-gradient",
            "shares": "own-parameters",
            "hidden-number": "state",
            "hidden-state": "state device",  # what is not saved does not move to another device either
            "hidden-pointer": "resumes",
            "hidden-schedule": "resumes",
            "numpy-randomness": "own-randomness",
            "python-randomness": "own-randomness",
            "draws-in-evaluation": "own-randomness",
            "own-seed": "seeded",
            "in-place": "views-unchanged",
            "device": "device",
            "device-by-name": "device",
            "item": "no-host-sync",
            "divides-by-zero": "after-step-finite",
            "changes-encoder": "after-step-changes-itself",
            "new-tensor": "after-step-in-place",
            "item-after-step": "after-step-no-host-sync",
        },
    ),
]

# -------------------------------------------------------------------------------------------- methods and metrics


def variant(**tables: dict[str, object]) -> dict[str, Variant]:
    return {"old": Variant(summary="s", presets=tables)}


METHODS = [
    # What needs the part is skipped, so that one fault is told once.
    Mutant("part-beyond", changed(fake.METHOD, encoder="fak"), "parts"),
    Mutant("table-beyond", changed(fake.METHOD, presets={"veiws": {"flaw": ""}}), "preset-tables"),
    Mutant("table-of-variant", changed(fake.METHOD, variants=variant(veiws={})), "preset-tables"),
    Mutant("preset-beyond", changed(fake.METHOD, presets={"views": {"flaws": ""}}), "presets"),
    Mutant("preset-type", changed(fake.METHOD, presets={"train": {"epochs": "many"}}), "presets"),
    Mutant("preset-of-variant", changed(fake.METHOD, variants=variant(views={"flaws": ""})), "presets"),
    Mutant("on-dataset", changed(fake.METHOD, on_dataset={"tiny": {"run": {"perturbation": []}}}), "presets"),
    Mutant("infinite", changed(fake.METHOD, presets={"loss": {"flaw": "infinite"}}), "one-step"),
]

METRICS = [
    Mutant("unknown-task", changed(fake.METRIC, tasks=("regression",)), "tasks"),
    Mutant("tasks-can-change", changed(fake.METRIC, tasks=["one_of"]), "tasks"),
    Mutant("limits-too-narrow", changed(fake.METRIC, limits=(0.99, 1.0)), "number"),
    slow(changed(fake.METRIC, score=fake.Score("slow")), "quick", options=None),
    Mutant("draws-unweighted", changed(fake.METRIC, score_draws=fake.Draws("unweighted")), "draws"),
    Mutant("tensors-unweighted", changed(fake.METRIC, score_tensors=fake.Tensors("unweighted")), "draws"),
    *by_score(
        {
            "text": "number absent-class",  # whichever classes occur; what compares scores is skipped
            "error": "perfect-is-best",
            "sum": "weight-scale",
            "unweighted": "weight-zero weight-counts",  # both say what a weight means
            "root": "weight-counts",
            "counts-zero": "weight-zero",
            "place": "order-of-rows weight-counts weight-zero",  # where rows are left out or added, places move
            "first-row": "order-of-rows",
            "single-precision": "number",
            "random": "pure",
            "absent-class": "absent-class",
            "in-place": "arguments-unchanged",
        }
    ),
]

PROTOCOLS = [
    Mutant("unknown-task", changed(fake.PROTOCOL, tasks=("regression",)), "tasks", Flaw()),
    slow(fake.PROTOCOL, "quick"),
    *by_flaw(
        fake.PROTOCOL,
        {
            "logits": "answers",
            "unlike-one": "answers",
            "random": "repeats rows-are-independent",  # what differs by itself differs with fewer rows too
            "trembles": "repeats",
            "peeks": "rows-are-independent",
            "in-place": "trial-unchanged",
        },
    ),
]

LISTENERS = [
    *by_flaw(fake.TRACKER, {"object": "listens hears", "deaf": "hears"}),  # what cannot listen hears nothing
    Mutant("no-listener", changed(fake.TRACKER, listen=fake.Quacks), "listens", Flaw()),
    *by_flaw(fake.SECTION, {"text": "makes makes-without-scores", "needs-scores": "makes-without-scores"}),
    Mutant("twice", changed(fake.GRID, conditions=fake.same_conditions), "lists", Flaw()),
    Mutant("empty", changed(fake.GRID, conditions=fake.no_conditions), "lists", Flaw()),
    Mutant("names", changed(fake.GRID, conditions=fake.names_only), "lists", Flaw()),
    Mutant("number", changed(fake.GRID, published=fake.number_published), "publishes", Flaw()),
    Mutant("needs-no-scores", changed(fake.SECTION, make=fake.only_without_scores), "makes", Flaw()),
]

# --------------------------------------------------------------------------------------------- plugins' modules

CARDS = [
    Mutant("heavy", "import triton", "light"),
    Mutant("slow", "import fake_clock\nfake_clock.advance(3.0)", "quick", says="expected at most 2.0 s; found 3.00 s"),
    Mutant("online", "import socket\nsocket.socket().close()", "no-socket"),
    Mutant("writing", "open(__file__ + '.log', 'w').close()", "writes-nothing"),
    Mutant("broken", "raise SystemExit('no licence')", "imports"),
    Mutant("future", "CLOCS_API = '99.0'", "api"),
]

MUTANTS = [
    *OFFERS,
    *DATASETS,
    *VIEWS,
    *PERTURBATIONS,
    *ENCODERS,
    *LOSSES,
    *OBJECTIVES,
    *METHODS,
    *METRICS,
    *PROTOCOLS,
    *LISTENERS,
    *CARDS,
]
