"""Rules for perturbations: they change signals (..., sample) on their device, with the given generator."""

from __future__ import annotations

from typing import Any

import attrs
import torch
from torch import Tensor

from clocs_core.contracts.offers import Perturb, Perturbation, SignalFacts
from clocs_core.testing.checks import Check, expect, label_of, make_checks, rules_of
from clocs_core.testing.pace import Clock, expect_quick
from clocs_core.testing.synthetic import synthetic_batch
from clocs_core.testing.tensors import (
    equal,
    refuse_host_sync,
    refuse_named_devices,
    refuse_other_devices,
    refuse_other_randomness,
)

BATCH, SAMPLES = 6, 200
CHANNELS = ("I", "II", "V1")
LEADS = (*CHANNELS, "V2", "V3", "V4", "V5", "V6", "III", "aVR", "aVL", "aVF")  # for one that needs all of them together
UNITS = ("mV", "uV", "")  # two units of voltage, and no unit
ADVICE = "Draw only from the given generator: torch.randn(..., generator=generator)."


@attrs.frozen
class _Case:
    offer: Perturbation
    options: Any
    clock: Clock
    channels: tuple[str, ...] = CHANNELS
    axis: int | None = None  # -2 for a perturbation that refuses signals of one channel

    def signal(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return views of two segments (view, batch, channel, sample); the last instance is flat."""
        made = synthetic_batch(BATCH, 2, len(self.channels), SAMPLES).signal
        return made.transpose(0, 1).contiguous().to(dtype)

    def units(self) -> list[str]:
        """Return the accepted units; another rule reports the refused ones."""
        return [unit for unit in UNITS if not _refusal(self, unit)]

    def apply(self, signal: Tensor, unit: str = "mV", **facts: Any) -> Tensor:
        return self.build(unit, **facts)(signal, torch.Generator().manual_seed(1))

    def build(self, unit: str = "mV", **facts: Any) -> Perturb:
        """Build it for signals of these channels, of which a view has one unless `axis` or `facts` say otherwise."""
        known: dict[str, Any] = {"unit": unit, "frame_rate": 500.0, "samples": SAMPLES, "channels": self.channels}
        return self.offer.make(self.options, SignalFacts(**known | {"channel_axis": self.axis} | facts))

    def builds(self) -> bool:
        """Return whether the channels are accepted. Another exception than a ValueError is for the rules to report."""
        try:
            self.build()
        except ValueError:
            return False
        except Exception:  # any exception of a plugin
            return True
        return True


def checks_of_perturbation(offer: Perturbation, options: Any, clock: Clock) -> list[Check]:
    """Return the checks of a perturbation.

    They use signals of three channels, one at a time. A perturbation that refuses these gets twelve leads together.
    """
    case, together = _Case(offer, options, clock), _Case(offer, options, clock, LEADS, -2)
    if together.builds() and not case.builds():
        case = together
    return make_checks(label_of(offer), rules_of(__name__), case)


def _units(case: _Case) -> None:
    """Signals of any unit are accepted: a voltage, or no unit."""
    for unit in UNITS:
        found = _refusal(case, unit)
        expect(not found, f"unit {unit!r} to be accepted", found, "Fall back to a size relative to the signal.")


def _refusal(case: _Case, unit: str) -> str:
    try:
        case.apply(case.signal(), unit)
    except Exception as problem:  # any exception counts as a refusal of the unit
        return repr(problem)
    return ""


def _shape(case: _Case) -> None:
    """The shape does not change, with any dimensions before the samples."""
    signal = case.signal()
    shapes = (signal, signal[0], signal[0, 0], signal[0, 0, 0])
    for one in shapes if case.axis is None else shapes[:3]:
        shape, found = tuple(one.shape), tuple(case.apply(one).shape)
        expect(found == shape, f"{shape}, as the signal", found, "Treat signals as (..., sample).")


def _signal_facts(case: _Case) -> None:
    """Signals of any rate are accepted, with one channel or all; a ValueError may refuse an unknown rate only."""
    if case.offer.build_for is None:
        return
    signal = case.signal()
    for rate in (None, 62.5, 100.0, 1000.0):
        for axis in (None, -2) if case.axis is None else (-2,):
            try:
                found = case.apply(signal.clone(), frame_rate=rate, channel_axis=axis)
            except ValueError as problem:
                if rate is None and str(problem):
                    continue
                raise
            good = found.shape == signal.shape and bool(found.isfinite().all())
            asked = f"finite signals of shape {tuple(signal.shape)} at {rate} Hz, channel axis {axis}"
            expect(good, asked, f"others of shape {tuple(found.shape)}", "Build it from the facts that it is given.")


def _dtype(case: _Case) -> None:
    """The dtype does not change."""
    for dtype in (torch.float32, torch.float64):
        found = case.apply(case.signal(dtype)).dtype
        expect(found == dtype, f"{dtype}, as the signal", found, "Draw noise with dtype=signal.dtype.")


def _device(case: _Case) -> None:
    """The device does not change, and every tensor is created on it."""
    signal = case.signal()
    refuse_other_devices(lambda: case.apply(signal), signal.device)
    refuse_named_devices(lambda move: case.apply(move(signal)))


def _finite(case: _Case) -> None:
    """Finite signals, flat ones included, stay finite, in every unit."""
    for unit in case.units():
        finite = bool(case.apply(case.signal(), unit).isfinite().all())
        advice = "A flat signal has no deviation: do not divide by it."
        expect(finite, f"finite signals in unit {unit!r}", "a NaN or an infinity", advice)


def _signal_unchanged(case: _Case) -> None:
    """The given signal is not modified: views may share its memory."""
    signal = case.signal()
    before = signal.clone()
    case.apply(signal)
    expect(torch.equal(signal, before), "the input as it was", "other values", "Return a new tensor, no in-place ops.")


def _seeded(case: _Case) -> None:
    """The same generator state gives the same result."""
    signal = case.signal()
    same = equal(case.apply(signal.clone()), case.apply(signal.clone()))
    expect(same, "equal results under equal seeds", "different ones", ADVICE)


def _own_randomness(case: _Case) -> None:
    """Random numbers come from the given generator; no global one is used."""
    signal = case.signal()
    refuse_other_randomness(lambda: case.apply(signal), ADVICE)


def _says_whether_it_draws(case: _Case) -> None:
    """`random` is true if numbers are drawn: a method that contrasts copies of a signal needs such a perturbation."""
    generator = torch.Generator().manual_seed(1)
    untouched = generator.get_state()
    case.build()(case.signal(), generator)
    draws = not torch.equal(generator.get_state(), untouched)
    expect(draws == case.offer.random, f"random={draws}", f"random={case.offer.random}", "Declare what it does.")


def _rows_are_independent(case: _Case) -> None:
    """The perturbed signal does not depend on the other signals of the batch."""
    signal = case.signal().flatten(0, -2 if case.axis is None else -3)  # (n, sample), or (n, channel, sample)
    other = signal.clone()
    other[0] = 3 * other[0] + 1
    first, again, second = (case.apply(one.clone())[1:] for one in (signal, signal, other))
    if not equal(first, again):  # the rule `seeded` reports it
        return
    advice = "Take means and deviations over the samples of one signal: dim=-1, keepdim=True."
    expect(equal(first, second), "the other signals as before", "others, after one signal was changed", advice)


def _no_host_sync(case: _Case) -> None:
    """No host sync, in any unit."""
    signal = case.signal()
    for unit in case.units():
        refuse_host_sync(lambda fake, unit=unit: case.apply(fake(signal), unit))  # type: ignore[misc]


def _quick(case: _Case) -> None:
    """A small batch takes little processor time."""
    signal = case.signal()
    expect_quick(
        lambda: case.apply(signal),
        f"{signal.numel()} samples",
        "Compute all signals at once, without loops.",
        case.clock,
    )
