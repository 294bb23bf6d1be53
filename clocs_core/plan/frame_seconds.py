"""The length of frames in seconds: `frame_seconds=5` stands for the sampling rate at which a frame lasts 5 s.

It is no field of a framing: settings files, encoder files and prepared frames have the rate that follows from it.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from clocs_core.contracts.records import Framing
from clocs_core.errors import SettingsError
from clocs_core.plan.layers import Assignment, Layers

NAME = "frame_seconds"
_OTHERS = ("source_samples", "frames_per_record")  # other ways to set the time scale of a frame
_WAYS = ("sampling_rate", *_OTHERS)


def take_seconds(given: Sequence[Assignment]) -> tuple[float | None, list[Assignment]]:
    """Take `frame_seconds` out of settings that are given by name. Raises SettingsError unless it is positive."""
    mine = [one for one in given if one.name == NAME and not one.table]
    rest = [one for one in given if one not in mine]
    return (read_seconds(mine[-1].value) if mine else None), rest


def read_seconds(value: object) -> float:
    """Read a number of seconds, typed or not. Raises SettingsError unless it is positive."""
    try:
        seconds = float(str(value))
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise SettingsError(f"`{NAME}=...` must be a positive number of seconds, got {value}.")
    return seconds


def set_seconds(layers: Layers, seconds: float | None, framings: Sequence[str]) -> Layers:
    """Return layers in which a frame of these framings lasts so long; None: as they are."""
    if seconds is None:
        return layers
    for one in layers.given:
        if one.name in _WAYS and one.table in ("", *framings):
            raise SettingsError(
                f"`{NAME}=...` and `{one.path}=...` both set the time scale of a frame; give one of them."
            )
    lasting = {name: in_seconds(layers.table(name, Framing).frame_samples, seconds) for name in framings}
    added = [
        Assignment(name, field, value, is_text=False)
        for name, fields in lasting.items()
        for field, value in fields.items()
    ]
    return attrs.evolve(layers, given=[*layers.given, *added])


def in_seconds(frame_samples: int, seconds: float) -> dict[str, float | None]:
    """Return the fields of a framing whose frames last so long."""
    return {"sampling_rate": frame_samples / seconds, **dict.fromkeys(_OTHERS)}
