"""An epoch that never was, for tests of what is done with the results of one."""

from __future__ import annotations

import torch

from clocs_core.contracts.events import EpochDone, Health

EPOCH = EpochDone(
    epoch=2,
    losses=torch.zeros(1),
    train_loss=0.5,
    validation_loss=0.25,
    health=Health(2.0, 8, 0.5, 0.1, 1.0),
    improved=True,
    best_epoch=1,
    instances=10,
    seconds=1.0,
    last=False,
)
