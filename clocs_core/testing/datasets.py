"""Rules for the declarations of data sets. `recordings` and `loads` have the rules for files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from clocs_core.contracts.offers import Dataset
from clocs_core.contracts.records import Framing
from clocs_core.testing import loads, recordings
from clocs_core.testing.checks import Check, expect, label_of, make_checks, rules_of, skipped
from clocs_core.testing.pace import Clock
from clocs_core.testing.recordings import DatasetCase

NOWHERE = Path("an-embedded-data-set-reads-no-file")


def checks_of_dataset(offer: Dataset, root: Path | None, options: Any, clock: Clock) -> list[Check]:
    """Return the checks of a data set; without its files, those of its declarations and a skipped one that says so."""
    declared, read = rules_of(__name__), [*rules_of(recordings.__name__), *rules_of(loads.__name__)]
    label, case = label_of(offer), DatasetCase(offer, root or NOWHERE, options, clock)
    if root is None and not offer.embedded:
        reason = f"no root was given, so {len(read)} checks that need recordings are not made"
        return [*make_checks(label, declared, case), skipped(label, "recordings", reason)]
    return make_checks(label, [*declared, *read], case)


def _tasks(case: DatasetCase) -> None:
    """Task names differ, and so do the classes of a task; only a data set whose files name the classes has none."""
    twice = [name for name, count in Counter(task.name for task in case.offer.tasks).items() if count > 1]
    expect(not twice, "task names that differ", f"{', '.join(twice)} twice", "Rename one of them.")
    for task in case.offer.tasks:
        expect(
            bool(task.outputs) or not case.offer.channels,
            f"classes of task {task.name!r}",
            "none",
            "Name them; only a data set that leaves its channels to the files may leave its classes to them.",
        )
        distinct = len(set(task.classes)) == len(task.classes) and all(task.classes)
        expect(distinct, f"classes of task {task.name!r} that differ", task.classes, "Name each class once.")


def _channels(case: DatasetCase) -> None:
    """Channel names differ, and can be written in a comma-separated list."""
    names = case.offer.channels
    fits = len(set(names)) == len(names) and all(name.strip() == name and name and "," not in name for name in names)
    expect(fits, "channel names that differ, without commas or outer spaces", names, "Rename them.")


def _columns(case: DatasetCase) -> None:
    """Column names differ; a category has two classes or more, which differ, and no other column has any."""
    columns = case.offer.columns
    once = len({column.name for column in columns}) == len(columns) and all(column.name for column in columns)
    expect(once, "column names that differ", [column.name for column in columns], "Rename them.")
    for column in columns:
        several = len(set(column.classes)) == len(column.classes) >= 2
        fits = several if column.kind == "category" else not column.classes
        expect(fits, f"classes as a {column.kind} has them in {column.name!r}", column.classes, "Correct the classes.")


def _presets(case: DatasetCase) -> None:
    """A preset names channels of the data set, each once; its own name is not that of a channel."""
    names = case.offer.channels
    for preset, chosen in case.offer.presets.items():
        missing = [name for name in chosen if names and name not in names]
        expect(not missing, f"channels of {case.offer.name} in preset {preset!r}", ", ".join(missing), "Correct them.")
        once = len(chosen) > 0 and len(set(chosen)) == len(chosen)
        expect(once, f"one channel or more, each once, in preset {preset!r}", chosen, "Correct the preset.")
        clash = preset in names
        expect(not clash, "a preset named unlike a channel", preset, "Rename the preset: it hides the channel.")


def _default_channels(case: DatasetCase) -> None:
    """The default channels are a preset, names of channels, or empty."""
    text, names = case.offer.defaults.channels, case.offer.channels
    asked = [part.strip() for part in text.split(",") if part.strip()]
    fits = text in case.offer.presets or not names or all(name in names for name in asked)
    known = ", ".join([*case.offer.presets, *names])
    expect(fits and len(set(asked)) == len(asked), f"some of {known}", text, "Correct defaults=Defaults(channels=…).")


def _framing(case: DatasetCase) -> None:
    """framing(1) and framing(2) return Framings with the same frame length: one encoder reads both."""
    one, two = (case.offer.framing(segments) for segments in (1, 2))
    both = isinstance(one, Framing) and isinstance(two, Framing)
    expect(both, "a Framing for 1 and for 2 segments", f"{one!r} and {two!r}", "Return clocs_core.Framing(...).")
    lengths = f"{one.frame_samples} and {two.frame_samples}"
    expect(one.frame_samples == two.frame_samples, "one frame_samples", lengths, "Change the rate, not the length.")
