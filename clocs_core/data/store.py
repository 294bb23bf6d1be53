"""Hold frames for the training step: on its device if they fit, else in pinned or mapped host memory."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

import attrs
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from clocs_core.contracts.batches import Batch
from clocs_core.contracts.kinds import kind_of
from clocs_core.contracts.records import Drop, FrameLabel, Label, Task
from clocs_core.data.framing import frame_labels
from clocs_core.data.memory import physical_memory
from clocs_core.data.prepared import Prepared

_SHARE_OF_DEVICE = 0.6  # of the free device memory; the rest is for activations
_SHARE_OF_HOST = 0.5  # of the machine's memory, for the pinned frames of all processes, of which each GPU may have one
_AT_ONCE = 1 << 25  # bytes of frames read at a time on their way to a device


@attrs.frozen(eq=False)
class Instances:
    """The frames and channels of each instance of a method."""

    frame: Tensor  # (n, segment) int64, rows of the store
    channel: Tensor  # (n, channel) int64, numbers of the chosen channels

    def __len__(self) -> int:
        return len(self.frame)


@attrs.frozen(eq=False)
class Store:
    """All frames of a prepared data set with their ids and labels, and the gather of a batch."""

    signal: Tensor  # (frame, column, sample) float32, or int16 to be divided by `gain`; on the device or on the host
    gain: Tensor  # (frame,) float32
    column: Tensor  # (channel,) int64: index of each chosen channel in the columns of `signal`
    patient: Tensor  # (frame,) int64
    record: Tensor  # (frame,) int64
    position: Tensor  # (frame,) int64, number of the frame in its recording
    label: Tensor  # (frame, ...), as in `Batch`
    patients: tuple[str, ...]
    records: tuple[str, ...]
    device: torch.device
    about: Mapping[str, Tensor] = attrs.field(factory=dict)  # columns by name, each (record,)

    _reading: WeakKeyDictionary[Instances, _Reading] = attrs.field(factory=WeakKeyDictionary, init=False, repr=False)

    def gather(self, instances: Instances, rows: Tensor) -> Batch:
        """Return the batch of the given instances. No host sync where the store is on the device.

        The first call computes the positions of all instances; a step then takes three look-ups.
        """
        reading = self._reading.get(instances)
        if reading is None:
            reading = self._reading[instances] = self._read(instances)
        lines = reading.line.index_select(0, rows)  # (batch, segment, channel)
        picked = self.signal.flatten(0, 1).index_select(0, lines.flatten().to(self.signal.device))
        signal = picked.to(self.device, non_blocking=True).view(*lines.shape, -1)  # (batch, segment, channel, sample)
        if reading.gain is not None:
            signal = signal / reading.gain.index_select(0, rows)[:, :, None, None]  # float32
        patient, record, segment, channel, known, _ = reading.ids.index_select(0, rows).unbind(1)  # each (batch,)
        label = known if reading.label is None else reading.label.index_select(0, rows)
        about = {name: column.index_select(0, record) for name, column in self.about.items()}
        return Batch(signal, patient, record, segment, channel, label, about)

    def _read(self, instances: Instances) -> _Reading:
        columns, first = self.signal.shape[1], instances.frame[:, 0]
        line = instances.frame.unsqueeze(2) * columns + self.column[instances.channel].unsqueeze(1)
        ids = [self.patient[first], self.record[first], self.position[first], instances.channel[:, 0]]
        number = self.label.dtype == torch.int64
        known = self.label[first] if number else torch.zeros_like(first)
        gain = self.gain[instances.frame] if self.signal.dtype == torch.int16 else None
        table = torch.stack([*ids, known, torch.zeros_like(first)], dim=1)  # rows of 48 bytes
        return _Reading(line, table, None if number else self.label[first], gain)


@attrs.frozen(eq=False)
class _Reading:
    """The positions of instances' signals in a store, with their ids, labels and gains."""

    line: Tensor  # (n, segment, channel) int64, along the frames and columns of the signal
    ids: Tensor  # (n, 6) int64: patient, record, segment, channel, label if it is a class, and padding: a GPU gathers
    # rows of a multiple of 16 bytes in 2 µs, others in 7 µs
    label: Tensor | None  # (n, class) or (n,) float32, where it is not the number of a class
    gain: Tensor | None  # (n, segment), where the signal is to be divided by it


def fill_store(
    prepared: Prepared,
    labels: Mapping[str, Label],
    task: Task,
    channels: Sequence[str],
    device: torch.device,
    about: Mapping[str, NDArray[Any]] | None = None,
) -> Store:
    """Put prepared frames into memory that the device can gather from.

    labels: by record id. about: columns by name, each with a value for every record of `prepared`.
    """
    names = [patient for _, patient in prepared.records]
    patients = sorted(set(names))
    code = {name: number for number, name in enumerate(patients)}
    patient_of_record = np.array([code[name] for name in names], dtype=np.int64)
    signal, column = _signal(prepared, channels, device)
    return Store(
        signal=signal,
        gain=torch.from_numpy(prepared.gain.astype(np.float32)).to(device),
        column=column,
        patient=torch.from_numpy(patient_of_record[prepared.record]).to(device),
        record=torch.from_numpy(prepared.record.astype(np.int64)).to(device),
        position=torch.from_numpy(prepared.position.astype(np.int64)).to(device),
        label=torch.from_numpy(_labels(prepared, labels, task)).to(device),
        patients=tuple(patients),
        records=tuple(record for record, _ in prepared.records),
        device=device,
        about={name: torch.from_numpy(values).to(device) for name, values in (about or {}).items()},
    )


def list_instances(
    prepared: Prepared,
    patients: frozenset[str],
    channels: Sequence[str],
    segments: int,
    together: bool,
    device: torch.device,
    recordings: int = 1,
) -> tuple[Instances, tuple[Drop, ...]]:
    """List the instances of some patients' recordings, and the recordings that serve none.

    An instance is `segments` adjacent frames of one recording, counted from its beginning without overlap. It has all
    channels if `together`, else one. Instances with a dropped lead-frame are left out.
    recordings: an instance has the same frames of so many recordings of one patient, those of one after the other.
    """
    mine = np.array([patient in patients for _, patient in prepared.records], dtype=bool)
    columns = np.array([prepared.channels.index(name) for name in channels], dtype=np.int64)
    frames = len(prepared.record)
    first = np.arange(0, max(0, frames - segments + 1))
    whole = (prepared.position[first] % segments == 0) & (
        prepared.record[first] == prepared.record[first + segments - 1]
    )
    first = first[whole & mine[prepared.record[first]]]
    groups, lone = _across_recordings(prepared, first, recordings)  # (group, recording)
    frame = (first[groups][:, :, None] + np.arange(segments)).reshape(
        len(groups), recordings * segments
    )  # (group, segment)
    good = prepared.valid[frame][:, :, columns].all(axis=1)  # (group, channel)
    if together:
        keep = good.all(axis=1)
        frame, channel = frame[keep], np.tile(np.arange(len(columns)), (int(keep.sum()), 1))
    else:
        group, column = np.nonzero(good)
        frame, channel = frame[group], column[:, None]
    seen = set(prepared.record[first].tolist())
    drops = tuple(
        Drop(f"fewer than {segments} frames in a row", prepared.records[number][0])
        for number in sorted(set(prepared.record.tolist()) - seen)
        if mine[number]
    )
    drops += tuple(
        Drop(f"its patient has fewer than {recordings} recordings with them", prepared.records[number][0])
        for number in lone
    )
    return Instances(torch.from_numpy(frame).to(device), torch.from_numpy(channel).to(device)), drops


def _across_recordings(
    prepared: Prepared, first: NDArray[np.int64], recordings: int
) -> tuple[NDArray[np.int64], list[int]]:
    """Join groups of frames at the same place in several recordings of a patient; return (group, recording), indices
    into `first`, and the records of patients with too few recordings.

    A patient's recordings stand in a circle: each is joined with those that follow it. As many recordings as are
    needed make one instance, more make one for each.
    """
    if recordings == 1:
        return np.arange(len(first))[:, None], []
    places: dict[str, dict[int, dict[int, int]]] = {}  # patient, record, position -> index into `first`
    for index, frame in enumerate(first.tolist()):
        record = int(prepared.record[frame])
        of_patient = places.setdefault(prepared.records[record][1], {})
        of_patient.setdefault(record, {})[int(prepared.position[frame])] = index
    joined, lone = [], []
    for of_patient in places.values():
        circle = list(of_patient)
        if len(circle) < recordings:
            lone += circle
            continue
        for start in range(len(circle) if len(circle) > recordings else 1):
            several = [of_patient[circle[(start + step) % len(circle)]] for step in range(recordings)]
            shared = [place for place in several[0] if all(place in one for one in several)]
            joined += [[one[place] for one in several] for place in shared]
    return np.array(joined, dtype=np.int64).reshape(-1, recordings), sorted(lone)


def _signal(prepared: Prepared, channels: Sequence[str], device: torch.device) -> tuple[Tensor, Tensor]:
    column = torch.tensor([prepared.channels.index(name) for name in channels], dtype=torch.int64)
    frames = prepared.frames.view()
    frames.flags.writeable = True  # of a private copy, which nothing writes to; torch warns of any other
    mapped = torch.from_numpy(frames)  # pages are read when a batch first touches them; nothing is copied
    if device.type == "cpu":
        return mapped, column
    held = _ON_DEVICES.setdefault(prepared, WeakValueDictionary())
    key = (*channels, str(device))
    signal = held.get(key)
    if signal is None:
        signal = _move(prepared, mapped, column, device)
        if signal is None:
            return mapped, column.to(device)
        held[key] = signal
    for kept in _KEPT:
        kept.append(signal)
    return signal, torch.arange(len(channels), device=device)


@contextmanager
def keeping_frames() -> Iterator[None]:
    """Keep the frames that stores need on a device until the end of the block: other runs will need them too."""
    kept: list[Tensor] = []
    _KEPT.append(kept)
    try:
        yield
    finally:
        _KEPT[:] = [one for one in _KEPT if one is not kept]


_KEPT: list[list[Tensor]] = []


# Frames that a store holds, by their channels and device: other stores of the same prepared set share them.
_ON_DEVICES: WeakKeyDictionary[Prepared, WeakValueDictionary[tuple[str, ...], Tensor]] = WeakKeyDictionary()


def _move(prepared: Prepared, mapped: Tensor, column: Tensor, device: torch.device) -> Tensor | None:
    """Copy the chosen columns to the device, or to pinned memory of the host where the device has too little.

    Return None where the host has too little as well: the map of the file, which all processes share, then serves.
    """
    shape = (len(mapped), len(column), mapped.shape[2])
    size = math.prod(shape) * mapped.element_size()
    free, _ = torch.cuda.mem_get_info(device)
    if size < _SHARE_OF_DEVICE * free:
        with suppress(torch.OutOfMemoryError):  # a memory limit of this process, which the device does not report
            signal = _copy(prepared, mapped, column, torch.empty(shape, dtype=mapped.dtype, device=device))
            torch.cuda.current_stream(device).synchronize()  # other runs read the frames on streams of their own
            return signal
    if size * torch.cuda.device_count() >= _SHARE_OF_HOST * physical_memory():
        return None
    return _copy(prepared, mapped, column, torch.empty(shape, dtype=mapped.dtype, pin_memory=True))


def _copy(prepared: Prepared, mapped: Tensor, column: Tensor, out: Tensor) -> Tensor:
    """Copy the chosen columns of all frames to `out`, with some of them in the memory of the host at a time.

    Pinned memory lies between the file and a GPU: all cores fill one piece of it while the GPU reads the other.
    """
    some = max(1, _AT_ONCE // (mapped[:1].nbytes or 1))
    start = int(column[0])
    in_a_row = torch.equal(column, torch.arange(start, start + len(column)))  # then they need not be gathered before
    pieces = [torch.empty_like(out[:some], device="cpu", pin_memory=True) for _ in range(2 * out.is_cuda)]
    sent: deque[torch.cuda.Event] = deque()
    for first in range(0, len(mapped), some):
        frames = mapped[first : first + some]
        chosen = frames[:, start : start + len(column)] if in_a_row else frames[:, column]
        if pieces:
            if len(sent) == len(pieces):
                sent.popleft().synchronize()
            chosen = pieces[0][: len(chosen)].copy_(chosen)
            pieces.reverse()
        out[first : first + some].copy_(chosen, non_blocking=True)
        if pieces:
            sent.append(torch.cuda.current_stream(out.device).record_event())
        prepared.let_go()
    return out


def _labels(prepared: Prepared, labels: Mapping[str, Label], task: Task) -> NDArray[np.int64] | NDArray[np.float32]:
    per_frame: list[FrameLabel | None] = []
    bounds = np.searchsorted(prepared.record, np.arange(len(prepared.records) + 1))
    for number, (record, _) in enumerate(prepared.records):
        per_frame += frame_labels(labels[record], prepared.start[bounds[number] : bounds[number + 1]], task.kind)
    return kind_of(task).as_array(per_frame, task)
