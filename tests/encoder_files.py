"""Encoder files of runs that never trained, for tests of what happens after a run."""

from __future__ import annotations

import attrs
import torch

from clocs_core.cli.main import open_session
from clocs_core.data.splits import split_patients
from clocs_core.extend.offers import Needs
from clocs_core.extend.plan import resolve
from clocs_core.extend.recordings import Chosen
from clocs_core.train.assemble import build_encoders
from clocs_core.train.encoderfile import save_encoder

CPU = torch.device("cpu")
PATIENTS = 12


def installed():
    """The offers of everything that is installed."""
    return open_session(None, (), False).catalogue


def plan_of(catalogue, needs=None, **data):
    """A plan for simulated recordings of a dozen patients; `needs` replaces what the method needs."""
    tables = {"run": {"method": "cmsc", "dataset": "demo", "embedding_dim": 8}, "dataset": {"patients": PATIENTS}}
    plan = resolve(catalogue, {**tables, "data": data})
    if needs is None:
        return plan
    views = attrs.evolve(plan.views.offer, needs=lambda options: needs)
    return attrs.evolve(plan, views=Chosen(views, plan.views.options))


def write_encoder(folder, plan, split=None, versions=None, frame_rate=500.0):
    """An encoder file in a folder, as a run leaves it; the first weights of the encoders and the file's path."""
    channels = plan.data.channels
    encoders = build_encoders(plan, len(channels), CPU)
    split = split or split_patients((f"patient-{n:05d}" for n in range(PATIENTS)), 0, plan.data.split)
    path = folder / "encoder.safetensors"
    had = versions or {"clocs": "0"}
    save_encoder(encoders.state_dict(), plan, channels, "mV", split, had, path, frame_rate=frame_rate)
    return encoders, path


ALL_AT_ONCE = Needs(segments=2, channels="all", encoder_channels="all")
