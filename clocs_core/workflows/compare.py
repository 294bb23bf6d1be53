"""Compare runs and evaluations: settings that differ, scores, and differences between scores.

Runs that differ by their seed only are summarised as one. Scores come from the reports; differences are computed from
the stored predictions, over the same bootstrap samples of the same test patients.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from string import ascii_uppercase

import attrs

from clocs_core.artifacts.results import Candidate, Group, group_by_seed, open_candidate
from clocs_core.artifacts.several_seeds import notes_of_seeds, run_folders
from clocs_core.contracts.scores import CHANCE, RANDOM, Score
from clocs_core.errors import SettingsError, UnknownName, neighbours
from clocs_core.plugins.catalogue import Catalogue
from clocs_core.progress import Display
from clocs_core.report.compared import Compared, ComparedScore, Compares, SettingRow
from clocs_core.workflows.differences import Wanted, find_differences


def compare_folders(paths: Sequence[Path], wanted: Wanted, catalogue: Catalogue, show: Display) -> Compared:
    """Compare the first of several run or evaluation folders with each of the others.

    A folder of several seeds stands for all its runs.

    Raises RunFolderError where a folder has no finished run or evaluation; UnknownName for an unknown metric or level.
    """
    paths = [one for path in paths for one in run_folders(path)]
    twice = [path for path in paths if [one.resolve() for one in paths].count(path.resolve()) > 1]
    if twice:
        raise SettingsError(f"{twice[0]} is given twice; give each run once.")
    return compare_candidates([open_candidate(path) for path in paths], wanted, catalogue, show)


def compare_candidates(
    candidates: Sequence[Candidate], wanted: Wanted, catalogue: Catalogue, show: Display
) -> Compared:
    """Compare the first of several finished runs and evaluations with each of the others."""
    groups = group_by_seed(candidates)
    named = tuple(_describe(letter, group) for letter, group in zip(_letters(len(groups)), groups, strict=True))
    chosen = _settle(wanted, [score for group in groups for one in group for score in one.scores])
    show.stage("drawing patients")
    differences = find_differences(groups, named, chosen, catalogue, show)
    notes = [f"{one.letter}: {note}" for one, group in zip(named, groups, strict=True) for note in _notes(group)]
    return Compared(
        compared=named,
        settings=_settings_that_differ(groups),
        scores=tuple(_scores(groups, named, chosen)),
        differences=differences.found,
        refused=differences.refused,
        notes=tuple(dict.fromkeys((*differences.missing, *notes))),
    )


# ------------------------------------------------------------------------------------------------ what they are made of


def _letters(count: int) -> list[str]:
    if count > len(ascii_uppercase):
        raise SettingsError(
            f"{count} groups differ by more than their seed, which is too many to compare; give at most 26."
        )
    return list(ascii_uppercase[:count])


def _describe(letter: str, group: Group) -> Compares:
    first = group[0]
    return Compares(
        letter=letter,
        folders=tuple(str(one.path) for one in group),
        kind=first.kind,
        weights=first.weights,
        protocol=first.protocol,
        dataset=first.dataset,
        task=first.task,
        part=first.part,
        seeds=tuple(one.seed for one in group),
    )


def _notes(group: Group) -> tuple[str, ...]:
    seeds_of = [one.seed for one in group]
    again = sorted({seed for seed in seeds_of if seeds_of.count(seed) > 1})
    twice = (f"Seed {again[0]} is there more than once: the sd is too small.",) if again else ()
    return (*twice, *notes_of_seeds([(one.seed, one.notes) for one in group]))


def _settings_that_differ(groups: Sequence[Group]) -> tuple[SettingRow, ...]:
    """List the settings that differ between groups; a run is not expected to have settings of an evaluation."""
    names = dict.fromkeys(name for group in groups for one in group for name in one.settings)
    rows = []
    for name in names:
        kinds = {one.kind for group in groups for one in group if name in one.settings}
        held = [[one.settings.get(name) for one in group if one.kind in kinds] for group in groups]
        if len({repr(value) for values in held for value in values}) > 1:
            each = [{repr(value): value for value in values if value is not None} for values in held]
            rows.append(SettingRow(name=name, values=tuple(tuple(one.values()) for one in each)))
    return tuple(rows)


# --------------------------------------------------------------------------------------------------------------- scores


def _settle(wanted: Wanted, scores: Sequence[Score]) -> Wanted:
    """Check the wanted names, and fill in defaults: the first metric where none is named."""
    metrics = list(dict.fromkeys(score.metric for score in scores))
    levels = list(dict.fromkeys(str(score.level) for score in scores))
    fractions = sorted({score.label_fraction for score in scores})
    named = {f"{one:g}": one for one in fractions}  # as they are shown
    for what, asked, there in (("metric", wanted.metrics, metrics), ("level", wanted.levels, levels)):
        for name in asked:
            if name not in there:
                raise UnknownName(f"None of the reports has the {what} {name!r}.{neighbours(name, there)}")
    for one in wanted.fractions:
        if f"{one:g}" not in named:
            shown = ", ".join(named) or "no score at all"
            raise SettingsError(f"None of the reports has scores at F = {one:g}; there is {shown}.")
    return Wanted(
        wanted.metrics or tuple(metrics[:1]),
        wanted.levels or tuple(levels),
        tuple(named[f"{one:g}"] for one in wanted.fractions) or tuple(fractions),
    )


def _scores(groups: Sequence[Group], named: Sequence[Compares], wanted: Wanted) -> list[ComparedScore]:
    found = []
    for fraction, metric, level in product(wanted.fractions, wanted.metrics, wanted.levels):
        for weights in ("own", RANDOM, CHANCE, "class prior"):
            for name, group in zip(named, groups, strict=True):
                mine = [
                    score
                    for one in group
                    for score in one.scores
                    if (score.label_fraction, score.metric, score.level) == (fraction, metric, level)
                    and _weights(one, score) == weights
                ]
                if mine:
                    found.append(_score_of(name.letter, weights, mine))
    return found


def _weights(one: Candidate, score: Score) -> str:
    if one.is_own(score):
        return "own"
    return "class prior" if score.is_prior else score.init


def _score_of(letter: str, weights: str, mine: Sequence[Score]) -> ComparedScore:
    first = mine[0]
    found = ComparedScore(
        letter=letter,
        weights=weights,
        label_fraction=first.label_fraction,
        metric=first.metric,
        level=first.level,
        values=tuple(score.value for score in mine),
    )
    return attrs.evolve(found, low=first.low, high=first.high) if len(mine) == 1 else found
