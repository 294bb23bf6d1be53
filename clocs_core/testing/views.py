"""Rules for view generators: they make views on the batch's device, in its order, with the given generator."""

from __future__ import annotations

import unittest
from collections.abc import Sequence
from typing import Any

import attrs
import torch
from torch import Tensor

from clocs_core.contracts.batches import Batch, Views
from clocs_core.contracts.offers import Needs, ViewGenerator
from clocs_core.contracts.records import Column
from clocs_core.testing.checks import Check, expect, label_of, make_checks, rules_of
from clocs_core.testing.pace import Clock, expect_quick
from clocs_core.testing.synthetic import synthetic_batch
from clocs_core.testing.tensors import (
    close,
    copy_of,
    equal,
    on_tensors,
    refuse_host_sync,
    refuse_named_devices,
    refuse_other_devices,
    refuse_other_randomness,
)

BATCH, SAMPLES = 6, 200
ADVICE = "Draw only from the given generator: torch.randn(..., generator=generator)."


def batch_for(
    needs: Needs, batch: int = BATCH, samples: int = SAMPLES, seed: int = 0, columns: Sequence[Column] = ()
) -> Batch:
    """Make a batch of instances that meets the needs, with these columns beside those of the needs."""
    segments = needs.segments * needs.recordings
    made = synthetic_batch(batch, segments, channels_for(needs), samples, patients=3, seed=seed)
    return attrs.evolve(made, about=about_for((*needs.columns, *columns), batch, seed))


def about_for(columns: Sequence[Column], count: int, seed: int = 0) -> dict[str, Tensor]:
    """Make values of columns; the last one is missing."""
    source = torch.Generator().manual_seed(seed)
    number, category = torch.randn(count, generator=source), torch.arange(count) % 2
    number[-1], category[-1] = float("nan"), -1
    return {column.name: category.clone() if column.kind == "category" else number.clone() for column in columns}


def channels_for(needs: Needs) -> int:
    """Return the number of channels of an instance that meets the needs."""
    return 1 if needs.channels == "each" else max(3, needs.channels_at_least)


@attrs.frozen
class _Case:
    offer: ViewGenerator
    options: Any
    clock: Clock

    def needs(self) -> Needs:
        needs = self.offer.needs(self.options)
        if not isinstance(needs, Needs):  # the rule `needs` reports it
            raise unittest.SkipTest("needs(options) gives no Needs, so no batch can be made")
        return needs

    def batch(self) -> Batch:
        return batch_for(self.needs())

    def make(self, batch: Batch | None = None) -> Views:
        """Make views with a new generator, seeded the same every time."""
        return self.offer.build(self.options)(batch or self.batch(), torch.Generator().manual_seed(1))


def checks_of_views(offer: ViewGenerator, options: Any, clock: Clock) -> list[Check]:
    """Return the checks of a view generator."""
    return make_checks(label_of(offer), rules_of(__name__), _Case(offer, options, clock))


def _needs(case: _Case) -> None:
    """needs(options) returns Needs that can be met."""
    needs = case.offer.needs(case.options)
    expect(isinstance(needs, Needs), "Needs", repr(needs), "Return clocs_core.Needs(...).")
    least = min(needs.segments, needs.recordings, needs.least_channels, needs.encoders)
    asked = "one or more segments, recordings, channels and encoders"
    expect(least >= 1, asked, repr(needs), "Ask for at least one of each.")
    text = [column.name for column in needs.columns if column.kind == "text"]
    expect(not text, "columns of numbers and categories", f"text in {', '.join(text)}", "No batch has a text.")


def _shape(case: _Case) -> None:
    """Views are (view, batch, channel, sample): batch and samples of the input, channels as Needs declares."""
    batch, views = case.batch(), case.make()
    expect(isinstance(views, Views), "Views", type(views).__name__, "Return clocs_core.Views(...).")
    chosen = batch.signal.shape[2] if case.needs().encoder_channels == "all" else 1
    shape, rest = tuple(views.signal.shape), (BATCH, chosen, SAMPLES)
    expect(
        len(shape) == 4 and shape[0] >= 1 and shape[1:] == rest,
        f"(view, batch, channel, sample) with one view or more and {rest} after it",
        shape,
        "Put the views first, keep every instance and every sample, and declare the channels of a view in Needs.",
    )


def _dtype(case: _Case) -> None:
    """Views keep the dtype of the signal."""
    for dtype in (torch.float32, torch.float64):
        batch = case.batch()
        found = case.make(attrs.evolve(batch, signal=batch.signal.to(dtype))).signal.dtype
        expect(found == dtype, f"{dtype}, as the signal", found, "Do not convert; make new tensors with dtype=…")


def _device(case: _Case) -> None:
    """Every tensor is created on the device of the batch."""
    batch = case.batch()
    refuse_other_devices(lambda: case.make(batch).signal, batch.signal.device)
    refuse_named_devices(lambda move: case.make(on_tensors(batch, move)).signal)


def _finite(case: _Case) -> None:
    """Finite signals, flat ones included, give finite views."""
    finite = case.make().signal.isfinite().all()
    expect(bool(finite), "finite views", "a NaN or an infinity", "A flat signal has no deviation: do not divide by it.")


def _target(case: _Case) -> None:
    """A target, if there is one, has a value for each view of each instance: (view, batch, ...)."""
    views = case.make()
    if views.target is not None:
        first, expected = tuple(views.target.shape[:2]), tuple(views.signal.shape[:2])
        expect(first == expected, f"a target (view, batch, ...) beginning {expected}", first, "Give every view one.")


def _encoder_of_view(case: _Case) -> None:
    """encoder_of_view is empty, or gives the encoder that reads each view."""
    views, encoders = case.make(), case.needs().encoders
    found, count = views.encoder_of_view, len(views.signal)
    expect(
        (not found and encoders == 1) or (len(found) == count and set(found) == set(range(encoders))),
        f"{count} numbers, all of 0 to {encoders - 1} among them" + (", or none" if encoders == 1 else ""),
        found,
        "Name an encoder for each view, and count the encoders in Needs.",
    )


def _pairs(case: _Case) -> None:
    """Chosen pairs consist of two different views, and no pair is repeated."""
    views = case.make()
    count, found = len(views.signal), [tuple(sorted(pair)) for pair in views.pairs]
    within = all(0 <= a < b < count for a, b in found)
    expect(
        within and len(set(found)) == len(found),
        f"pairs of different views from 0 to {count - 1}, each pair once",
        views.pairs,
        "Leave `pairs` empty for all of them.",
    )


def _perturb(case: _Case) -> None:
    """With perturb='one each' there is exactly one view; each perturbation adds another."""
    views = case.make()
    expect(
        views.perturb != "one each" or len(views.signal) == 1,
        "one view with perturb='one each'",
        f"{len(views.signal)} views",
        "Give the clean view alone; core adds one for each perturbation.",
    )


def _batch_unchanged(case: _Case) -> None:
    """The batch is not modified."""
    batch = case.batch()
    before = copy_of(batch)
    case.make(batch)
    changed = [
        field.name
        for field in attrs.fields(Batch)
        if isinstance(old := getattr(before, field.name), Tensor) and not torch.equal(old, getattr(batch, field.name))
    ]
    expect(
        not changed, "the batch as it was", f"another {', '.join(changed)}", "Work on a clone, without in-place ops."
    )


def _seeded(case: _Case) -> None:
    """The same generator state gives the same views."""
    same = equal(case.make().signal, case.make().signal)
    expect(same, "equal views under equal seeds", "different ones", ADVICE)


def _own_randomness(case: _Case) -> None:
    """Random numbers come from the given generator; no global one is used."""
    batch = case.batch()
    refuse_other_randomness(lambda: case.make(batch), ADVICE)


def _order_of_batch(case: _Case) -> None:
    """Position i of every view is instance i: without random numbers, reordering the batch reorders the views."""
    generator = torch.Generator().manual_seed(1)
    untouched, batch = generator.get_state(), case.batch()
    views = case.offer.build(case.options)(copy_of(batch), generator)
    drawn = not torch.equal(generator.get_state(), untouched)  # random numbers belong to positions, not to instances
    if not drawn and equal(case.make().signal, views.signal):  # if unequal, the rule `seeded` reports it
        order = torch.arange(BATCH).flip(0)
        same = close(case.make(copy_of(batch, order)).signal, views.signal[:, order])
        expect(same, "views in the order of the batch", "another order", "Keep instance i at position i of every view.")
    ids = tuple(views.batch.patient.shape)
    expect(ids == (BATCH,), f"ids of {BATCH} instances in views.batch", ids, "Return the given batch in the views.")


def _no_host_sync(case: _Case) -> None:
    """Making views causes no host sync."""
    batch = case.batch()
    refuse_host_sync(lambda fake: case.make(on_tensors(batch, fake)))


def _quick(case: _Case) -> None:
    """The views of a small batch take little processor time."""
    batch = case.batch()
    expect_quick(
        lambda: case.make(batch), f"views of {BATCH} instances", "Make all views at once, without loops.", case.clock
    )
