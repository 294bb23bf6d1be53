"""Cards of small networks, and encoder files of runs that never trained."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import attrs
import torch
from torch import nn

from clocs_core.artifacts.card import EncoderCard, NetworkCard
from clocs_core.artifacts.encoder import save_encoder
from clocs_core.artifacts.split import Split
from clocs_core.contracts.offers import Needs
from clocs_core.contracts.records import Framing, Task
from clocs_core.data.splits import split_patients
from clocs_core.plan.data import Chosen
from clocs_core.plan.pretraining import Plan, resolve
from clocs_core.plugins.catalogue import Catalogue
from clocs_core.plugins.session import open_session
from clocs_core.settings.options import plain
from clocs_core.settings.toml_file import Tables
from clocs_core.train.build import build_encoders

CPU = torch.device("cpu")
PATIENTS = 12
ALL_AT_ONCE = Needs(segments=2, channels="all", encoder_channels="all")
Card = TypeVar("Card", bound=NetworkCard)


def fake_card(kind: type[Card], **other: Any) -> Card:
    """The card of a network that reads one ECG channel at a time; `other` are further fields, and those that differ."""
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


def installed() -> Catalogue:
    """The offers of everything that is installed."""
    return open_session().catalogue


def plan_of(catalogue: Catalogue, needs: Needs | None = None, **data: object) -> Plan:
    """A plan for simulated recordings of a dozen patients; `needs` replaces what the method needs."""
    tables: Tables = {
        "run": {"method": "cmsc", "dataset": "demo", "embedding_dim": 8},
        "dataset": {"patients": PATIENTS},
    }
    plan = resolve(catalogue, {**tables, "data": data})
    if needs is None:
        return plan
    views = attrs.evolve(plan.views.offer, needs=lambda options: needs)
    return attrs.evolve(plan, views=Chosen(views, plan.views.options))


def write_encoder(
    folder: Path,
    plan: Plan,
    split: Split | None = None,
    versions: Mapping[str, str] | None = None,
    frame_rate: float | None = 500.0,
) -> tuple[nn.ModuleList, Path]:
    """An encoder file in a folder, as a run leaves it; the first weights of the encoders and the file's path."""
    channels = plan.data.channels
    encoders = build_encoders(plan, len(channels), CPU)
    split = split or split_patients((f"patient-{n:05d}" for n in range(PATIENTS)), 0, "60/20/20")
    path = folder / "encoder.safetensors"
    card = fake_card(
        EncoderCard,
        method=plan.method.name,
        dataset=plan.dataset.offer.name,
        encoder=plan.encoder.offer.name,
        options=plain(plan.encoder.options),
        input_channels=len(channels) if plan.needs.encoder_channels == "all" else 1,
        frame_samples=plan.pretrain_framing.frame_samples,
        embedding_dim=plan.run.embedding_dim,
        count=plan.needs.encoders,
        channels=plan.needs.of_first(channels),
        run_channels=channels,
        modality=plan.dataset.offer.modality,
        normalise=plan.data.normalise,
        pretrain_framing=plan.pretrain_framing,
        framing=plan.evaluate_framing,
        frame_rate=frame_rate,
        task=plan.task,
        split_hash=split.hash,
        settings=plan.tables(),
        licence=plan.dataset.offer.licence,
        versions=versions or {"clocs": "0"},
    )
    save_encoder(encoders.state_dict(), card, path)
    return encoders, path
