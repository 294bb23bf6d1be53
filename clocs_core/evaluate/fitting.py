"""Does a signal fit a classifier? Its channels by name, its unit, its time scale; what does not fit is refused."""

from __future__ import annotations

import attrs

from clocs_core.data.records import Framing
from clocs_core.data.shards import MICROVOLTS
from clocs_core.errors import DataError, SettingsError, neighbours
from clocs_core.evaluate.classifiers import ClassifierCard

__all__ = ["fit_channels", "fit_framing", "fit_unit"]

_VOLTS = {"V": 1_000_000, **MICROVOLTS}  # in microvolts
_NO_UNIT = ("", "counts")  # of a recorder that does not say how many of them are a millivolt


def fit_channels(card: ClassifierCard, found: tuple[str, ...], asked: tuple[str, ...], where: str) -> tuple[str, ...]:
    """The channels to read, in the classifier's order: those that were asked for, else those it was trained on.

    A classifier that reads several at once knows them by their place: it needs all of its own, and no other.
    """
    if len(set(asked)) < len(asked):
        raise SettingsError(f"A channel is named twice in {', '.join(asked)}.")
    together = card.input_channels > 1
    wanted = asked or card.channels
    how = "at once" if together else "each by itself"
    missing = [name for name in wanted if name not in found]
    if missing:
        there = [name for name in wanted if name in found]
        instead = (
            f"; to read those that are there, add `--channels {','.join(there)}`" if there and not together else ""
        )
        raise DataError(
            f"{where} has no channel {missing[0]!r}.{neighbours(missing[0], found)} The classifier was trained on "
            f"{', '.join(card.channels)}, {how}{instead}."
        )
    if not together:
        return wanted
    if set(wanted) != set(card.channels):
        raise SettingsError(
            f"The classifier reads {', '.join(card.channels)} at once, got {', '.join(wanted)}; leave out "
            "`--channels`: it finds them by name."
        )
    return card.channels


def fit_unit(card: ClassifierCard, unit: str, where: str) -> float:
    """What samples in `unit` are multiplied by to be in the classifier's. Volts of all sizes convert.

    If the classifier normalises, the scale goes out: a signal without a physical unit is then taken as it is.
    """
    normalises = card.normalise == "min-max"
    if not card.unit or unit == card.unit or (normalises and not {unit, card.unit}.isdisjoint(_NO_UNIT)):
        return 1.0
    if not unit:
        raise DataError(
            f"{where} does not say its unit, and the classifier reads {card.unit}, not normalised; add `--unit "
            f"{card.unit}`, or the unit it is in."
        )
    if {unit, card.unit} <= _VOLTS.keys():
        return _VOLTS[unit] / _VOLTS[card.unit]
    if normalises:
        way_out = f"If it is only another word, add `--unit {card.unit}`."
    else:
        way_out = "One that is fine-tuned with `-o normalise=min-max` does not depend on the scale."
    raise DataError(
        f"{where} is in {unit}, and the classifier was trained on signals in {card.unit}: these cannot be converted "
        f"(V, mV and µV can). {way_out}"
    )


def fit_framing(card: ClassifierCard, rate: float | None, trained_at: float | None) -> Framing:
    """How recordings of `rate` Hz are cut, so that a frame lasts as long as in training. None: of any rate.

    trained_at: Hz of the recordings that it was trained on, for a file that does not say it.
    """
    framing = card.framing
    if framing.sampling_rate is not None or framing.frames_per_record is not None:
        return framing
    span = framing.source_samples or framing.frame_samples  # of the source, that make a frame
    trained = trained_at
    if trained is None and card.frame_rate is not None:
        trained = card.frame_rate * span / framing.frame_samples
    if trained is None and not card.says_rate:
        raise SettingsError(
            "The classifier was trained on recordings at their own rate, and its file does not say which that was; "
            "say it with `--trained-at HZ`."
        )
    if trained is None or rate == trained:  # in the first case it has seen frames of several time scales
        return framing
    if framing.source_samples is not None and rate is not None and (span * rate / trained).is_integer():
        return attrs.evolve(framing, source_samples=int(span * rate / trained))  # windows stretched as in training
    return attrs.evolve(framing, source_samples=None, sampling_rate=trained * framing.frame_samples / span)
