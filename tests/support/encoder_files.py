"""Make encoder files without training, for tests of the commands that follow a run."""

from __future__ import annotations

import attrs
import torch

from clocs_core.artifacts.card import EncoderCard
from clocs_core.artifacts.encoder import save_encoder
from clocs_core.contracts.offers import Needs
from clocs_core.data.splits import split_patients
from clocs_core.plan.data import Chosen
from clocs_core.plan.pretraining import resolve
from clocs_core.plugins.session import open_session
from clocs_core.settings.options import plain
from clocs_core.train.build import build_encoders

CPU = torch.device("cpu")
PATIENTS = 12


def installed():
    """Return the offers of all installed plugins."""
    return open_session(None, (), False).catalogue


def plan_of(catalogue, needs=None, **data):
    """Make a plan for simulated recordings of a dozen patients; `needs` replaces the needs of the method."""
    tables = {"run": {"method": "cmsc", "dataset": "demo", "embedding_dim": 8}, "dataset": {"patients": PATIENTS}}
    plan = resolve(catalogue, {**tables, "data": data})
    if needs is None:
        return plan
    views = attrs.evolve(plan.views.offer, needs=lambda options: needs)
    return attrs.evolve(plan, views=Chosen(views, plan.views.options))


def write_encoder(folder, plan, split=None, versions=None, frame_rate=500.0):
    """Write an encoder file into a folder, as a run does; return the encoders' initial weights and the file's path."""
    channels = plan.data.channels
    encoders = build_encoders(plan, len(channels), CPU)
    split = split or split_patients((f"patient-{n:05d}" for n in range(PATIENTS)), 0, plan.data.split)
    path = folder / "encoder.safetensors"
    had = versions or {"clocs": "0"}
    card = EncoderCard(
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
        unit="mV",
        modality=plan.dataset.offer.modality,
        normalise=plan.data.normalise,
        pretrain_framing=plan.pretrain_framing,
        framing=plan.evaluate_framing,
        frame_rate=frame_rate,
        task=plan.task,
        split_hash=split.hash,
        settings=plan.tables(),
        licence=plan.dataset.offer.licence,
        versions=had,
    )
    save_encoder(encoders.state_dict(), card, path)
    return encoders, path


ALL_AT_ONCE = Needs(segments=2, channels="all", encoder_channels="all")
