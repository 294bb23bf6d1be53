"""The card of a small network that reads one ECG channel at a time, in frames of 100 samples."""

from __future__ import annotations

from clocs_core.contracts.records import Framing, Task


def tiny_card(kind, **other):
    """Make such a card. other: additional fields, and fields that differ."""
    fields = {
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
