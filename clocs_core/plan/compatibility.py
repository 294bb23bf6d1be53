"""Check that a signal fits a network: its channels by name, its unit and its time scale. Refuse it otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

import attrs

from clocs_core.artifacts.card import NetworkCard
from clocs_core.contracts.records import SCALE_FREE, Framing
from clocs_core.contracts.units import MICROVOLTS, factor_between
from clocs_core.errors import DataError, SettingsError, neighbours

_WORDS = {
    "v": "V",
    "volt": "V",
    "mv": "mV",
    "millivolt": "mV",
    "uv": "uV",
    "\u03bcv": "uV",  # casefold turns the micro sign into the Greek letter
    "microvolt": "uV",
}  # suggested, not converted: MV may be meant
_NO_UNIT = ("", "counts")  # counts per millivolt are unknown


def fit_names(card: NetworkCard, found: Sequence[str]) -> tuple[str, ...]:
    """Return the names of a recording's channels in the network's spelling, where only the spelling differs.

    Spelling means case, surrounding spaces and the prefix "lead". An ambiguous name is kept as it is.
    """
    known: dict[str, list[str]] = {}
    for name in (*card.channels, *card.others):
        known.setdefault(_plain_name(name), []).append(name)
    spelt = {name: known.get(_plain_name(name), [name]) for name in found}
    names = tuple(name if name in spelt[name] or len(spelt[name]) > 1 else spelt[name][0] for name in found)
    return names if len(set(names)) == len(names) else tuple(found)


def without_others(card: NetworkCard, names: tuple[str, ...]) -> tuple[str, ...]:
    """Remove the channels that other encoders of the run read; keep all where none would be left."""
    return tuple(name for name in names if name not in card.others) or names


def _plain_name(name: str) -> str:
    words = name.casefold().replace("_", " ").split()
    return " ".join(words[1:] if words[:1] == ["lead"] and len(words) > 1 else words)


def fit_channels(card: NetworkCard, found: tuple[str, ...], asked: tuple[str, ...], where: str) -> tuple[str, ...]:
    """Choose the channels to read, in the network's order: those in `asked`, else those it was trained on.

    A network that reads several channels at once knows them by position: it needs exactly its own.
    """
    if len(set(asked)) < len(asked):
        raise SettingsError(f"A channel is named twice in {', '.join(asked)}.")
    together = card.input_channels > 1
    wanted = asked or card.channels
    how = "at once" if together else "each by itself"
    missing = [name for name in wanted if name not in found]
    if missing:
        there = [name for name in wanted if name in found]
        instead = "those that are there, add" if there else "another, name it with"
        way_out = "" if together else f"; to read {instead} `channels={there or 'NAME'}`"
        raise DataError(
            f"{where} has no channel {missing[0]!r}.{neighbours(missing[0], found)} The {card.what} was trained on "
            f"{', '.join(card.channels)}, {how}{way_out}."
        )
    if not together:
        return wanted
    if set(wanted) != set(card.channels):
        raise SettingsError(
            f"The {card.what} reads {', '.join(card.channels)} at once, got {', '.join(wanted)}; leave out "
            "`channels`: it finds them by name."
        )
    return card.channels


def refuse_unseen(card: NetworkCard, names: Sequence[str], where: str, renames: bool) -> None:
    """Raise DataError where a user's recording has channels that the network was not trained on.

    The network would still return numbers, but untested ones. renames: whether it is a single channel that the user
    named, and could name otherwise.
    """
    unseen = [name for name in names if name not in card.channels]
    if not unseen:
        return
    free = [name for name in card.channels if name not in names]
    nearest = {name: _nearest(name, free) for name in unseen}
    told = (f"{name!r}{f' (nearest in name: {near})' if near else ''}" for name, near in nearest.items())
    right = nearest[unseen[0]] or (free[0] if len(free) == 1 else "")
    example = f": `channels={right!r}`" if right and renames else ""
    who, them = ("it", "it") if len(unseen) == 1 else ("any", "them")
    same = "one of these" if len(card.channels) > 1 else "the same"
    rename = f" If {who} is {same} under another name, give it that name{example}." if free else ""
    leave = f" Without {them}, the others can be read." if len(unseen) < len(names) else ""
    raise DataError(
        f"{where}: the {card.what} was trained on {', '.join(card.channels)}, not on {', '.join(told)}.{rename}{leave} "
        f"To read {them} all the same, add `unseen_channels=True`."
    )


def _nearest(name: str, known: Sequence[str]) -> str:
    """Return the known name most similar to `name`, or contained in it as a word ("ECG II"); empty where none is."""
    plain = {_plain_name(one): one for one in known}
    asked = _plain_name(name)
    close = [word for word in asked.split() if word in plain] or get_close_matches(asked, plain, n=1)
    return plain[close[0]] if close else ""


def fit_unit(card: NetworkCard, unit: str, where: str) -> float:
    """Return the factor that converts samples in `unit` to the network's unit. V, mV and µV convert.

    If the network normalises each signal by itself, the scale cancels: a signal without a physical unit is then used
    as it is.
    """
    normalises = card.normalise in SCALE_FREE
    if not card.unit or unit == card.unit or (normalises and not {unit, card.unit}.isdisjoint(_NO_UNIT)):
        return 1.0
    if not unit:
        raise DataError(
            f"{where} does not say its unit, and the {card.what} reads {card.unit}, not normalised; add "
            f"`unit={card.unit!r}`, or the unit it is in."
        )
    if (factor := factor_between(unit, card.unit)) is not None:
        return factor
    word = _WORDS.get(unit.strip().casefold().removesuffix("s")) if card.unit in MICROVOLTS else None
    scale = "" if normalises else " One that is trained with `normalise='min-max'` does not depend on the scale."
    raise DataError(
        f"{where} is in {unit}, and the {card.what} was trained on signals in {card.unit}: these cannot be converted "
        f"(V, mV and µV can). If it is only another word, add `unit={word or card.unit!r}`.{scale}"
    )


def fit_framing(card: NetworkCard, rate: float | None, trained_at: float | None) -> Framing:
    """Return the framing of recordings at `rate` Hz (None: any rate) that makes a frame last as long as in training.

    trained_at: rate in Hz of the recordings it was trained on, for a file that does not state it.
    """
    framing = card.framing
    if framing.sampling_rate is not None or _of_any_length(card):
        return framing
    if framing.frames_per_record is not None:
        return attrs.evolve(framing, sampling_rate=card.frame_rate)  # one that lasts as in training is still stretched
    span = framing.source_samples or framing.frame_samples  # samples of the source in a frame
    trained = trained_at
    if trained is None and card.frame_rate is not None:
        trained = card.frame_rate * span / framing.frame_samples
    if trained is None and not card.says_rate:
        raise SettingsError(
            f"The {card.what} was trained on recordings at their own rate, and its file does not say which that was; "
            f"say it with `trained_at=HZ`."
        )
    if trained is None or rate == trained:  # None: trained on frames of several time scales
        return framing
    if framing.source_samples is not None and rate is not None and (span * rate / trained).is_integer():
        return attrs.evolve(framing, source_samples=int(span * rate / trained))  # stretch windows as in training
    return attrs.evolve(framing, source_samples=None, sampling_rate=trained * framing.frame_samples / span)


def warn_of_length(card: NetworkCard) -> str:
    """Return a sentence where recordings of any length are stretched to a number of frames; else ""."""
    if not _of_any_length(card):
        return ""
    count = card.framing.frames_per_record or 0
    return (
        f"The {card.what} was trained on whole recordings, stretched to {count} frame{'s' * (count != 1)} each, and "
        "its file does not say how long they lasted: a recording of another length is stretched or squeezed in time."
    )


def _of_any_length(card: NetworkCard) -> bool:
    return card.framing.frames_per_record is not None and card.frame_rate is None
