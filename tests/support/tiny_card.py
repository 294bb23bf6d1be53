"""What the file of a small network says of it: of one ECG channel at a time, by frames of 100 samples."""

from __future__ import annotations

from typing import Any, TypeVar

from clocs_core.artifacts.card import NetworkCard
from clocs_core.contracts.records import Framing, Task

Card = TypeVar("Card", bound=NetworkCard)


def tiny_card(kind: type[Card], **other: Any) -> Card:
    """A card of this kind. other: its further fields, and those that differ."""
    fields: dict[str, Any] = {
        "dataset": "set",
        "encoder": "net",
        "options": {},
        "input_channels": 1,
        "frame_samples": 100,
        "embedding_dim": 8,
        "channels": ("II", "V2"),
        "unit": "mV",
        "modality": "ecg",
        "normalise": "none",
        "framing": Framing(frame_samples=100),
        "frame_rate": None,
        "says_rate": True,
        "task": Task("t", ("a", "b")),
        "split_hash": "",
        "settings": {},
        "versions": {},
    }
    return kind(**fields | other)
