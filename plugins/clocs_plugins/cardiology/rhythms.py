"""Map the committee's episodes to classes: 14 rhythm names in the files, 12 classes in the paper."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal

import attrs

from clocs_core import Episode

WINDOW = 256  # "Each ECG frame in our setup consisted of 256 samples resampled to 2500 samples", A.1: 1.28 s

SUDDEN_BRADY = "SUDDEN_BRADY"
_CLASS_OF = {
    "AFIB": "AFIB",
    "AFL": "AFIB",  # flutter is counted with fibrillation
    "AVB_TYPE2": "AVB",
    "BIGEMINY": "BIGEMINY",
    "EAR": "EAR",
    "IVR": "IVR",
    "JUNCTIONAL": "JUNCTIONAL",
    "NOISE": "NOISE",
    "NSR": "NSR",
    "SVT": "SVT",
    "TRIGEMINY": "TRIGEMINY",
    "VT": "VT",
    "WENCKEBACH": "WENCKEBACH",
}
CLASSES = tuple(sorted(set(_CLASS_OF.values())))


@attrs.frozen
class Rhythms:
    """The content of a label file: episodes sorted by onset, and counts of unknown rhythm names."""

    episodes: tuple[Episode, ...]
    unknown: Counter[str]


def class_numbers(sudden_brady: Literal["drop", "avb"]) -> dict[str, int | None]:
    """Return the class of each rhythm name; None if its frames get no label."""
    numbers: dict[str, int | None] = {name: CLASSES.index(group) for name, group in _CLASS_OF.items()}
    numbers[SUDDEN_BRADY] = CLASSES.index("AVB") if sudden_brady == "avb" else None
    return numbers


def read_rhythms(content: bytes, samples: int, numbers: Mapping[str, int | None]) -> Rhythms:
    """Read the label file of a recording of `samples` samples. Raise ValueError if it is not a label file.

    The file counts samples from 1 and lists episodes in any order; they are cut at the end of the recording.
    """
    found: list[Episode] = []
    unknown: Counter[str] = Counter()
    for onset, offset, name in sorted(_episodes(content), key=lambda episode: episode[0]):
        if name not in numbers:
            unknown[name] += 1
        elif (number := numbers[name]) is not None and onset <= samples:
            found.append(Episode(onset - 1, min(offset, samples) - 1, number))
    return Rhythms(tuple(found), unknown)


def gives_a_frame(episodes: tuple[Episode, ...], samples: int) -> bool:
    """Return whether a window of the paper's length starts in an episode; a frame has the label of its first sample."""
    end = samples // WINDOW * WINDOW  # end of the last whole window; no frame starts after it
    return any(-(-episode.onset // WINDOW) * WINDOW <= min(episode.offset, end - 1) for episode in episodes)


def _episodes(content: bytes) -> list[tuple[int, int, str]]:
    """Return onset, offset and name of each episode, as written."""
    try:
        held = json.loads(content)
        episodes = [(one["onset"], one["offset"], one["rhythm_name"]) for one in held["episodes"]]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ValueError(f"not a list of episodes ({type(error).__name__}: {str(error)[:80]})") from error
    for onset, offset, name in episodes:
        if not (_whole(onset) and _whole(offset) and isinstance(name, str) and 1 <= onset <= offset):
            raise ValueError(f"an episode {str(name)[:40]!r} from sample {str(onset)[:20]} to {str(offset)[:20]}")
    return episodes


def _whole(number: Any) -> bool:
    return type(number) is int
