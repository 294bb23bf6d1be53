"""Say in ten sentences which claims of the paper hold on our data, from the files of exports alone.

    python benchmarks/paper_claims.py EXPORT ... --asked benchmarks/paper.toml --out docs/paper/claims.md

A claim is a list of comparisons, such as CMSC with SimCLR at each E and F. A comparison is above or below where its
95 % interval over seeds and patients excludes 0; otherwise it cannot be told, and so it is with one seed. The word of a
claim follows from these counts, as far as chance does not explain them.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import attrs
from command_line import command_line
from scipy.stats import binom
from scipy.stats import t as student

from clocs_core.contracts.grids import Condition, nothing_published
from clocs_core.errors import ClocsError
from clocs_core.files import write_atomically
from clocs_core.grids.definition import Grid
from clocs_core.grids.distances import DistanceLine, summarise_distances
from clocs_core.grids.exported_files import Kept, read_kept
from clocs_core.grids.exported_tables import KeptLines
from clocs_core.grids.grid_file import read_grid_file, settle_grid
from clocs_core.grids.measure import Lookup
from clocs_core.grids.rows import Sheet, markdown
from clocs_core.grids.summary import Judged, Line, Summary, tabulate
from clocs_core.plugins.session import open_session

OURS = ("cmsc", "cmlc", "cmsmlc")
BYOL = "byol keep=loss"  # the row whose epoch is kept by the paper's rule, and which has the paper's numbers
OUTCOMES = ("above", "below", "open", "one seed", "missing")
EMPTY = Summary((), ())


@attrs.frozen
class Compared:
    """One comparison: our difference as (value, low, high), None where it is not made, and those of the paper.

    repetitions: of ours. The paper has several differences where one data set of ours stands in for several of its own.
    who: what is compared with what, in words. paired: whether both were scored on the same drawn patients.
    """

    ours: tuple[float, float, float] | None
    repetitions: int = 0
    papers: tuple[float, ...] = ()
    who: str = ""
    paired: bool = True

    @property
    def outcome(self) -> str:
        """One of OUTCOMES."""
        if self.ours is None:
            return "missing"
        if self.repetitions < 2:
            return "one seed"
        _, low, high = self.ours
        return "above" if low > 0 else "below" if high < 0 else "open"


@attrs.frozen
class Tables:
    """The tables of the paper with our numbers, by name; those of distances by themselves.

    across: the paired difference of two lines of different places of a table; None where it was not exported.
    """

    scores: Mapping[str, Summary]
    distances: Mapping[str, tuple[DistanceLine, ...]]
    across: Callable[[Line, Line], Judged | None] = lambda line, other: None


@attrs.frozen
class Claim:
    """A claim of the paper, where it stands, and the comparisons that it is about."""

    text: str
    where: str
    compare: Callable[[Tables], list[Compared]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the exports, judge every claim, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("exports", type=Path, nargs="+", help="folders that `clocs grid export --folder` wrote")
    parser.add_argument("--asked", type=Path, required=True, help="the file of the grid")
    parser.add_argument("--out", type=Path, required=True, help="the page to write")
    given = parser.parse_args(arguments)
    catalogue = open_session().catalogue
    try:
        grid = settle_grid(read_grid_file(given.asked), catalogue)
        kept = read_kept(given.exports, grid.measure)
    except ClocsError as problem:
        print(f"Error: {problem}", file=sys.stderr)
        return 2
    published = {item.offer.name: item.offer.published for item in catalogue.grids}
    print(write_claims(grid, kept, published, given.out, command_line(__file__) if arguments is None else ""))
    return 0


def write_claims(grid: Grid, kept: Kept, published: Mapping[str, Lookup], out: Path, command: str) -> str:
    """Judge every claim, and write the page. Returns its text."""
    text = page(make_tables(grid, kept, published), command)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(out, text.encode())
    return text


def make_tables(grid: Grid, kept: Kept, published: Mapping[str, Lookup]) -> Tables:
    """Make all tables of a grid from the files of exports."""
    scores, distances = {}, {}
    for preset in grid.presets:
        if preset.needs_scores:
            found = KeptLines(kept, grid.repeats, published.get(preset.offer, nothing_published))
            scores[preset.name] = tabulate(preset.conditions, found)
        else:
            distances[preset.name] = summarise_distances(preset.conditions, grid.repeats, kept)
    return Tables(scores, distances, KeptLines(kept, grid.repeats, nothing_published).across)


def page(tables: Tables, command: str) -> str:
    """Write the ten sentences, and the counts behind them."""
    found = [(claim, claim.compare(tables)) for claim in CLAIMS]
    sentences = [f"{number}. {say(claim, compared)}" for number, (claim, compared) in enumerate(found, start=1)]
    return "\n\n".join(
        [
            "# What of the paper holds on these data",
            INTRODUCTION,
            f"```console\n$ {command}\n```",
            "\n".join(sentences),
            markdown(_counts(found)),
            "## By what is compared",
            markdown(_counts_by_pair(found)),
        ]
    )


INTRODUCTION = """\
Two scores are *told apart* where the 95 % interval of their difference, over seeds and patients, excludes 0: the first
is above the second, or below it. Where there is no difference at all, chance makes one comparison in forty *above*,
and one in forty *below*. From these counts follows the word of a claim:

| word | |
| --- | --- |
| holds | all comparisons that were made are above |
| holds in part | more comparisons are above than chance allows (binomial test, one-sided, 2.5 %) |
| holds here and not there | more comparisons are above, and more are below, than chance allows |
| does not hold | more comparisons are below than chance allows (binomial test, one-sided, 2.5 %) |
| cannot be told | neither more above nor more below than chance allows |
| not made | no comparison was made |

Comparisons are counted as if they were independent. They are not: they share patients, and those over F and over data
sets share the pre-trained encoders. So chance may make more of them than is counted here.

PTB-XL stands in for Chapman and PhysioNet 2020: one comparison of ours then stands beside two of the paper. The paper
has no intervals, so that its comparisons are by its means. Fine-tuning on the recordings of the pre-training is no
transfer, and does not count here. BYOL keeps the epoch that the paper's rule keeps."""


def say(claim: Claim, compared: Sequence[Compared]) -> str:
    """Say in one sentence whether a claim holds."""
    count = Counter(one.outcome for one in compared)
    judged = sum(count[name] for name in ("above", "below", "open"))
    if not judged and not count["one seed"]:
        return f"**Not made**: {claim.text} ({claim.where})."
    papers = _papers(compared)
    printed = f"; in the paper, above in {sum(value > 0 for value in papers)} of {len(papers)}" if papers else ""
    less = {"one seed": "of one seed alone in", "missing": "not made in"}
    rest = "".join(f", {words} {count[name]}" for name, words in less.items() if count[name])
    here = f"above in {count['above']} of {judged} comparisons, below in {count['below']}"
    here += f", not told apart in {count['open']}"
    found = [one.ours for one in compared if one.ours is not None]
    each = (
        ", " + " and ".join("{:+.3f} [{:+.3f}, {:+.3f}]".format(*one) for one in found) if 0 < len(found) <= 2 else ""
    )
    wide = "" if all(one.paired for one in compared if one.ours is not None) else f"; {UNPAIRED}"
    return f"**{_word(count, judged)}**: {claim.text} ({claim.where}{wide}): {here}{each}{rest}{printed}."


UNPAIRED = "the interval is as if the two were scored on different patients, which is as a rule too wide"


def _papers(compared: Iterable[Compared]) -> list[float]:
    """Return the paper's differences where ours was made, so that both are of the same comparisons."""
    return [value for one in compared if one.ours is not None for value in one.papers]


def _word(count: Counter[str], judged: int) -> str:
    """Choose the word for the counts of a claim: those count that chance makes less than once in forty times."""
    by_chance = binom.ppf(0.975, judged, 0.025) if judged else 0
    above, below = count["above"] > by_chance, count["below"] > by_chance
    if judged and count["above"] == judged:
        return "Holds"
    if above and below:
        return "Holds here and not there"
    if above:
        return "Holds in part"
    return "Does not hold" if below else "Cannot be told"


def _counts(found: Iterable[tuple[Claim, Sequence[Compared]]]) -> Sheet:
    rows = []
    for number, (_, compared) in enumerate(found, start=1):
        count = Counter(one.outcome for one in compared)
        values = [one.ours[0] for one in compared if one.ours is not None]
        papers = _papers(compared)
        means = (f"{statistics.mean(each):+.3f}" if each else "" for each in (values, papers))
        rows.append((str(number), *(str(count[name]) for name in OUTCOMES), *means))
    headings = ("claim", "above", "below", "not told apart", "one seed", "not made", "mean difference", "of the paper")
    return Sheet("", headings, tuple(rows), (False,) * len(rows))


def _counts_by_pair(found: Iterable[tuple[Claim, Sequence[Compared]]]) -> Sheet:
    """Count apart what a claim names together: it may hold for one method and not for another."""
    rows = []
    for number, (_, compared) in enumerate(found, start=1):
        pairs: dict[str, list[Compared]] = {}
        for one in compared:
            pairs.setdefault(one.who, []).append(one)
        for who, ones in pairs.items():
            count = Counter(one.outcome for one in ones)
            values = [one.ours[0] for one in ones if one.ours is not None]
            mean = f"{statistics.mean(values):+.3f}" if values else ""
            rows.append((str(number), who, *(str(count[name]) for name in OUTCOMES), mean))
    headings = ("claim", "compared", "above", "below", "not told apart", "one seed", "not made", "mean difference")
    return Sheet("", headings, tuple(rows), (False,) * len(rows))


def between(tables: Tables, names: Iterable[str], firsts: Sequence[str], seconds: Sequence[str]) -> list[Compared]:
    """Compare every first method with every second one wherever a table has both."""
    found: dict[tuple[object, ...], Compared] = {}
    for summary in (tables.scores.get(name, EMPTY) for name in names):
        apart = {(one.context, one.a, one.b): one for one in summary.differences}
        for context, lines in _by_context(summary).items():
            for first, second in ((a, b) for a in firsts for b in seconds if a != b and {a, b} <= lines.keys()):
                ours = Compared(None)
                if there := apart.get((context, first, second)):
                    side = there.interval
                    ours = Compared((side.value, side.low, side.high), there.repetitions)
                elif back := apart.get((context, second, first)):
                    side = back.interval
                    ours = Compared((-side.value, -side.high, -side.low), back.repetitions)
                ours = attrs.evolve(ours, who=f"{first} - {second}")
                _add(found, (_own(context), first, second), ours, _printed(lines[first], lines[second]))
    return list(found.values())


def over_random(tables: Tables, names: Iterable[str], methods: Sequence[str]) -> list[Compared]:
    """Compare methods with the untrained encoder of the same table. It may have several; the paper has one."""
    found: dict[tuple[object, ...], Compared] = {}
    for summary in (tables.scores.get(name, EMPTY) for name in names):
        for context, lines in _by_context(summary).items():
            untrained = [one for one in lines.values() if not one.condition.trains]
            for method in (one for one in methods if one in lines):
                gain = lines[method].gain
                ours = Compared((gain.value, gain.low, gain.high), lines[method].done) if gain else Compared(None)
                ours = attrs.evolve(ours, who=f"{method} - random, {context.downstream}")
                papers = next((_printed(lines[method], one) for one in untrained if one.printed), ())
                _add(found, (_own(context), method), ours, papers)
    return list(found.values())


def fewer_labels(tables: Tables, name: str, few: float) -> list[Compared]:
    """Compare CMSC with a fraction of the labels with random initialisation with all of them."""
    lines = tables.scores.get(name, EMPTY).lines
    trained = [one for one in lines if one.condition.method == "cmsc" and one.condition.label_fraction == few]
    untrained = [one for one in lines if not one.condition.trains]
    return _across(tables, trained, untrained, lambda place: attrs.evolve(place, label_fraction=1.0))


def by_perturbation(tables: Tables, name: str) -> list[Compared]:
    """Compare CMSC with SimCLR under the same perturbations."""
    summary = tables.scores.get(name, EMPTY)
    rows: dict[str, dict[str, str]] = {}
    for one in (line.condition for line in summary.lines if line.condition.trains):
        rows.setdefault(one.options[0], {})[one.method] = one.row
    both = [row for row in rows.values() if {"cmsc", "simclr"} <= row.keys()]
    return [one for row in both for one in between(tables, [name], [row["cmsc"]], [row["simclr"]])]


def by_dimension(tables: Tables, name: str, large: int, small: int) -> list[Compared]:
    """Compare CMSC with many dimensions with CMSC with few."""
    lines = [one for one in tables.scores.get(name, EMPTY).lines if one.condition.row == "cmsc"]
    wide = [one for one in lines if one.condition.embedding_dim == large]
    return _across(tables, wide, lines, lambda place: attrs.evolve(place, embedding_dim=small))


def _across(
    tables: Tables, lines: Iterable[Line], others: Sequence[Line], elsewhere: Callable[[Condition], Condition]
) -> list[Compared]:
    """Compare each line with the one of `others` at another place, which `elsewhere` makes of its own."""
    found: dict[tuple[object, ...], Compared] = {}
    for line in lines:
        place = elsewhere(line.condition.context)
        for other in (one for one in others if one.condition.context == place):
            who = f"{line.condition.row} - {other.condition.row}, {line.condition.downstream}"
            paired = tables.across(line, other)
            apart = (paired.value, paired.low, paired.high) if paired else apart_unpaired(line, other)
            ours = Compared(apart, min(line.done, other.done), who=who, paired=paired is not None)
            _add(found, (_own(place),), ours, _printed(line, other))
    return list(found.values())


def separations(tables: Tables, name: str) -> list[Compared]:
    """Compare how well distances tell patients apart, by CMSC and by SimCLR; over seeds, which are paired."""
    lines = {line.name: line.separation.values for line in tables.distances.get(name, ())}
    ours, theirs = (lines.get(method, ()) for method in ("cmsc", "simclr"))
    if [len(row) for row in ours] != [len(row) for row in theirs]:
        return [Compared(None)]  # one of them has seeds that the other has not
    each = [a - b for row, other in zip(ours, theirs, strict=True) for a, b in zip(row, other, strict=True)]
    if len(each) < 2:
        return [Compared(None)]
    mean = statistics.mean(each)
    half = student.ppf(0.975, len(each) - 1) * statistics.stdev(each) / math.sqrt(len(each))
    return [Compared((mean, mean - half, mean + half), len(each), who="cmsc - simclr")]


def apart_unpaired(line: Line, other: Line) -> tuple[float, float, float] | None:
    """Return the difference of two scores with an interval as if they were of different patients.

    It is as a rule too wide: scores of the same patients go up and down together.
    """
    a, b = line.interval, other.interval
    if a is None or b is None:
        return None
    value = a.value - b.value
    return (
        value,
        value - math.hypot(a.value - a.low, b.high - b.value),
        value + math.hypot(a.high - a.value, b.value - b.low),
    )


def _by_context(summary: Summary) -> dict[Condition, dict[str, Line]]:
    found: dict[Condition, dict[str, Line]] = {}
    for line in summary.lines:
        place = line.condition.context
        if place.protocol == "linear" or place.pretraining != place.downstream:  # fine-tuned elsewhere: a transfer
            found.setdefault(place, {})[line.condition.row] = line
    return found


def _own(context: Condition) -> Condition:
    """Return a place as our data have it: where one data set stands in for two, two places of the paper are one."""
    return attrs.evolve(context, printed_pretraining=context.pretraining, printed_downstream=context.downstream)


def _printed(line: Line, other: Line) -> tuple[float, ...]:
    return (line.printed.mean - other.printed.mean,) if line.printed and other.printed else ()


def _add(
    found: dict[tuple[object, ...], Compared],
    key: tuple[object, ...],
    ours: Compared,
    papers: tuple[float, ...],
) -> None:
    """Add a comparison, or the paper's differences to one that is there."""
    before = found.get(key, ours)
    found[key] = attrs.evolve(before, papers=(*before.papers, *papers))


LINEAR = ("linear-4-leads", "linear-12-leads")
TUNED = ("transfer-4-leads", "transfer-12-leads")
CLAIMS = (
    Claim(
        "in linear evaluation, CMSC is above BYOL and SimCLR",
        "section 6.2 and appendix D",
        lambda tables: between(tables, LINEAR, ["cmsc"], [BYOL, "simclr"]),
    ),
    Claim(
        "in linear evaluation, CMLC and CMSMLC are above SimCLR",
        "section 6.2 and appendix D",
        lambda tables: between(tables, LINEAR, ["cmlc", "cmsmlc"], ["simclr"]),
    ),
    Claim(
        "in fine-tuning, self-supervised pre-training is above random initialisation",
        "section 6.3, table 2 and appendix E",
        lambda tables: [
            *over_random(tables, TUNED, [*OURS, BYOL, "simclr"]),
            *over_random(tables, ["transfer-main"], ["mt-ssl"]),  # which the appendix leaves out
        ],
    ),
    Claim(
        "in fine-tuning, CMSC and CMSMLC are above BYOL and SimCLR",
        "section 6.3 and appendix E",
        lambda tables: between(tables, TUNED, ["cmsc", "cmsmlc"], [BYOL, "simclr"]),
    ),
    Claim(
        "in fine-tuning, CMSC and CMSMLC are above CMLC",
        "section 6.3 and appendix E",
        lambda tables: between(tables, TUNED, ["cmsc", "cmsmlc"], ["cmlc"]),
    ),
    Claim(
        "fine-tuned with a quarter of the labels, CMSC is above random initialisation with all of them",
        "section 6.4",
        lambda tables: fewer_labels(tables, "more-with-less", 0.25),
    ),
    Claim(
        "CMSC is above SimCLR, whatever perturbs the signals",
        "section 6.1; of the two copies of SimCLR one is perturbed",
        lambda tables: by_perturbation(tables, "perturbations"),
    ),
    Claim(
        "fine-tuned on few labels, CMSC with E = 128 is above CMSC with E = 32",
        "section 6.5",
        lambda tables: by_dimension(tables, "effect-of-dimension", 128, 32),
    ),
    Claim(
        "fine-tuned with any fraction of the labels, CMSMLC is above SimCLR, CMSC and CMLC",
        "section 6.5",
        lambda tables: between(tables, ["effect-of-labels"], ["cmsmlc"], ["simclr", "cmsc", "cmlc"]),
    ),
    Claim(
        "distances between embeddings tell patients apart better by CMSC than by SimCLR",
        "section 6.6; the interval is over seeds alone",
        lambda tables: separations(tables, "patient-distances"),
    ),
)

if __name__ == "__main__":
    raise SystemExit(main())
