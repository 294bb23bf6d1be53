"""Compute representations of labelled frames once, with the encoder frozen and in eval mode."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import attrs
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call

from clocs_core.contracts.batches import Batch
from clocs_core.contracts.kinds import as_rows
from clocs_core.contracts.protocols import Features as Features
from clocs_core.data.memory import warn_of_memory
from clocs_core.data.store import Instances, Store
from clocs_core.train.normalise import Normalise
from clocs_core.train.ranks import Group
from clocs_core.turns import waiting

_Rows: TypeAlias = tuple[Tensor, Tensor, Tensor, Tensor]  # embedding, label, patient, record

_AT_ONCE = 1024  # frames per forward pass: about 40 MB of activations with the paper's encoder


def embed(
    encoder: nn.Module,
    store: Store,
    instances: Instances,
    normalise: Normalise,
    tick: Callable[[int, int], None],
    group: Group | None = None,
) -> Features:
    """Embed every instance (one segment each) without gradient, in eval mode; restore the encoder's mode.

    group: processes that share the work. Each embeds some of the batches of one process, so that rounding is the same,
    and gets the embeddings of all.
    """
    was_training = encoder.training
    encoder.eval()
    parts: list[_Rows] = []
    share = None if group is None else group.divide_blocks(len(instances), _AT_ONCE)
    every = torch.arange(len(instances), device=store.device)
    mine = every if share is None else every[share.own]
    batches = (mine if len(mine) else every[:1]).split(_AT_ONCE)  # no encoder has to take an empty batch
    with torch.inference_mode():
        for step, rows in enumerate(batches, start=1):
            parts += _embed_somewhere(encoder, store, instances, normalise, rows)
            tick(step, len(batches))
    encoder.train(was_training)
    columns = [torch.cat(column)[: len(mine)] for column in zip(*parts, strict=True)]
    gathered = columns if share is None else [share.gather(column) for column in columns]
    with waiting():
        z, label, patient, record = (column.cpu() for column in gathered)  # sync point
    return Features(z.numpy(), as_rows(label.numpy()), patient.numpy(), record.numpy())


def _embed_rows(
    encoder: nn.Module, store: Store, instances: Instances, normalise: Normalise, rows: Tensor
) -> list[_Rows]:
    """Embed the rows; halve the batch when memory runs out, since a failure here would lose hours of training."""
    try:
        return [_embed_batch(encoder, store.gather(instances, rows), normalise)]
    except torch.OutOfMemoryError:
        if len(rows) == 1:
            raise
    halves = rows.chunk(2)  # not inside `except`: its traceback would keep the tensors alive
    return [part for half in halves for part in _embed_rows(encoder, store, instances, normalise, half)]


def _embed_somewhere(
    encoder: nn.Module, store: Store, instances: Instances, normalise: Normalise, rows: Tensor
) -> list[_Rows]:
    """Embed the rows on the device of the store; or on the CPU, with a warning, where one does not fit by itself."""
    try:
        return _embed_rows(encoder, store, instances, normalise, rows)
    except torch.OutOfMemoryError:
        if store.device.type == "cpu":
            raise
    warn_of_memory(store.device)
    return [_embed_on_cpu(encoder, store, instances, normalise, rows)]


def _embed_on_cpu(encoder: nn.Module, store: Store, instances: Instances, normalise: Normalise, rows: Tensor) -> _Rows:
    """Embed rows on the CPU, and return them on the device of the store. The encoder stays where it is."""
    batch = store.gather(instances, rows)  # frames alone: what does not fit are activations
    moved = attrs.evolve(batch, signal=batch.signal.cpu())
    weights = {name: one.cpu() for name, one in (*encoder.named_parameters(), *encoder.named_buffers())}
    z, *ids = _embed_batch(partial(functional_call, encoder, weights), moved, normalise)
    label, patient, record = ids
    return z.to(store.device), label, patient, record


def _embed_batch(encoder: Callable[[Tensor], Tensor], batch: Batch, normalise: Normalise) -> _Rows:
    signal = batch.signal[:, 0]  # (batch, channel, sample)
    z = encoder(normalise(signal))  # (batch, dim)
    label = batch.label if batch.label is not None else torch.full_like(batch.patient, -1)
    return z.float(), label, batch.patient, batch.record


def pool_records(rows: Features) -> Features:
    """Return one row per recording: the mean of its embeddings, in float64, and the label of its first row."""
    records, first, number = np.unique(rows.record, return_index=True, return_inverse=True)
    total = add_rows(rows.embedding, number, len(records))
    mean = (total / np.bincount(number)[:, None]).astype(np.float32)
    return Features(mean, rows.label[first], rows.patient[first], records)


def add_rows(rows: NDArray[np.floating], number: NDArray[np.integer], count: int) -> NDArray[np.float64]:
    """Return the sums (count, dim), in float64, of rows that have the same number (row,), added in their order.

    By torch, which gives the bits of np.add.at in a tenth of its time.
    """
    total = torch.zeros(count, rows.shape[1], dtype=torch.float64)
    values = torch.from_numpy(np.ascontiguousarray(rows, dtype=np.float64))
    return total.index_add_(0, torch.from_numpy(np.asarray(number, dtype=np.int64)), values).numpy()
