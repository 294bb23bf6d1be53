"""Plugins out of nothing with a run of theirs, in a second: for tests of what is done with an encoder afterwards."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import attrs
from fake_plugins import FINDINGS, PARITY, TinyOptions, fake_point, offers, pairs, tiny, tiny_load, together
from no_pictures import without_pictures

from clocs_core import Batch, Entry, Episode, Listing, Needs, NoOptions, Record, Task, ViewGenerator, Views
from clocs_core.cli import main
from clocs_core.contracts.records import Label
from clocs_core.data.splits import split_patients

if TYPE_CHECKING:
    from torch import Generator

BEATS = Task("beats", classes=("even", "odd"), per="frame")
RUN = ["run", "--plugin", "together", "--dataset", "tiny", "--epochs", "2", "-o", "resamples=20", "--device", "cpu"]


def all_at_once(_options: NoOptions) -> Needs:
    return Needs(channels="all", encoder_channels="all", least_channels=2)


def two_encoders(_options: NoOptions) -> Needs:
    return Needs(segments=2, encoders=2)


def segments_to_encoders(_options: NoOptions) -> Callable[[Batch, Generator], Views]:
    return each_its_own


def each_its_own(batch: Batch, _generator: Generator) -> Views:
    return Views(signal=batch.signal.transpose(0, 1), batch=batch, encoder_of_view=(0, 1))


def build_frames(_options: NoOptions) -> Callable[[Batch, Generator], Views]:
    return frame_twice


def frame_twice(batch: Batch, _generator: Generator) -> Views:
    signal = batch.signal.transpose(0, 1)
    return Views(signal=signal.repeat(2, 1, 1, 1), batch=batch)


def many_scan(_root: Path, task: Task, _options: TinyOptions) -> Listing:
    """Three recordings of each of 24 patients, labelled for whichever task, but for every eighth patient."""
    entries: list[Entry] = []
    for number in range(24):
        labels: dict[str, Label] = {"parity": number % 2, "findings": frozenset({number % 2})}
        label = labels.get(task.name, (Episode(0, 99, number % 2), Episode(100, 199, 1 - number % 2)))
        entries += [Entry(f"p{number}-{visit}", f"p{number}", label if number % 8 else None) for visit in range(3)]
    return Listing(entries)


def unchecked_scan(root: Path, task: Task, options: TinyOptions) -> Listing:
    """The same with no label among the validation patients of split seed 0."""
    entries = many_scan(root, task, options).entries
    split = split_patients((entry.patient for entry in entries), 0, "64/16/20")
    return Listing(
        [attrs.evolve(one, label=None) if split.parts[one.patient] == "validation" else one for one in entries]
    )


def many_load(entry: Entry, options: TinyOptions) -> Record:
    return attrs.evolve(tiny_load(entry, options), label=entry.label)


def points(**more: Callable[..., Any]) -> list[EntryPoint]:
    """The entry points: what `fake_plugins` has, a larger data set, and methods with other needs."""
    hooks = offers()
    hooks["clocs_datasets"] = lambda: [
        tiny(),
        tiny("many", tasks=(PARITY, FINDINGS, BEATS), scan=many_scan, load=many_load),
        tiny("unchecked", scan=unchecked_scan, load=many_load),
        tiny("strange", channels=("up", "down"), presets={}),
    ]
    hooks["clocs_views"] = lambda: [
        pairs(),
        ViewGenerator(name="leads", summary="s", needs=all_at_once, build=build_frames),
        ViewGenerator(name="two", summary="s", needs=two_encoders, build=segments_to_encoders),
    ]
    hooks["clocs_methods"] = lambda: [together(), together("leads", views="leads"), together("two", views="two")]
    return [cast(EntryPoint, fake_point("fakes", **(hooks | more)))]


def make_run(folder: Path, *more: str) -> Path:
    """A small finished run; what it prepares lies beside it."""
    with without_pictures():
        assert main([*RUN, "--data-root", str(folder / "data"), "--out", str(folder / "run"), *more], points()) == 0
    return folder / "run"
