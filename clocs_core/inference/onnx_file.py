"""Export an encoder as one ONNX file that resamples, normalises and encodes windows.

The file reads windows of a recording: the samples of one frame, at the recording's own rate and in the encoder's unit.
Its outputs are compared with PyTorch before it is written.
"""

from __future__ import annotations

import copy
import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import torch
from numpy.typing import NDArray

from clocs_core.artifacts.card import EncoderCard
from clocs_core.artifacts.documents import as_plain
from clocs_core.artifacts.encoder import LoadedEncoder
from clocs_core.contracts.records import Framing, Record
from clocs_core.data.framing import cut_frames
from clocs_core.errors import SettingsError, Unavailable
from clocs_core.files import write_atomically
from clocs_core.inference.network import outputs_of
from clocs_core.inference.resampling import build_stretch
from clocs_core.inference.rows import as_trained
from clocs_core.inference.signals import MOST_STRETCHED
from clocs_core.plan.compatibility import fit_framing

TOLERANCE = 1e-5  # relative to the largest number in an embedding, or to 1 where that is smaller
_ROUNDING = 16  # times as far as PyTorch is from float64: onnxruntime adds the products of long convolutions one by one
_OPSET = 20  # published in 2023; current readers support it
_TRIED = (1, 5)  # windows in the batches that are compared: the graph must not depend on the batch size


@attrs.frozen
class Window:
    """The input of an exported encoder: samples per channel, which become one frame. rate: Hz, where known."""

    samples: int
    rate: float | None
    framing: Framing  # cuts a recording into such windows and resamples each


def choose_window(card: EncoderCard, rate: float | None = None, trained_at: float | None = None) -> Window:
    """Choose windows for recordings of `rate` Hz; without a rate, those that the run's own evaluation read.

    A window is resampled by itself, and not filtered: filters belong to the whole recording. Where the run resampled
    whole recordings and cut them then, results are equal for a recording of one frame, and else differ near the edges
    of a frame. Raises SettingsError for windows that are not a whole number of samples, or hold too few.
    """
    framing = card.framing if rate is None else fit_framing(card, rate, trained_at)
    samples, at = framing.frame_samples, rate or framing.sampling_rate or card.frame_rate
    if framing.source_samples is not None:
        span = float(framing.source_samples)
        at = rate or (None if card.frame_rate is None else card.frame_rate * span / samples)
    elif rate is not None and framing.sampling_rate is not None:
        span = samples * rate / framing.sampling_rate
    elif rate is not None and framing.frames_per_record is not None:
        raise SettingsError(
            f"The run stretched whole recordings to {framing.frames_per_record} frames, whatever their rate: leave out "
            "`sampling_rate`, and give the file frames that are cut like that."
        )
    else:
        span = float(samples)
    if not span.is_integer():
        raise SettingsError(
            f"A frame lasts {span / (rate or 1):g} s, which at {rate:g} Hz are {span:g} samples, not a whole number; "
            f"resample to {framing.sampling_rate:g} Hz, and leave out `sampling_rate`."
        )
    if rate is not None and span * MOST_STRETCHED < min(samples, card.framing.source_samples or samples):
        raise SettingsError(
            f"At {rate:g} Hz, {span:g} samples would be upsampled to a frame of {samples}: nearly all would be "
            "interpolated. Check `sampling_rate`: it is in Hz, not in kHz."
        )
    own = attrs.evolve(framing, sampling_rate=None, frames_per_record=None, source_samples=int(span), keep_flat=True)
    return Window(int(span), at, attrs.evolve(own, band_pass=None, notch=None))


def as_module(loaded: LoadedEncoder, window: Window) -> torch.nn.Sequential:
    """Build the exported module: windows (n, channel, sample) in the encoder's unit to embeddings (n, E)."""
    network = torch.nn.Sequential(build_stretch(window.framing), as_trained(loaded.encoder, loaded.card))
    return torch.nn.Sequential(_KeepsMissing(network)).eval()


class _KeepsMissing(torch.nn.Module):
    """Gives NaN where a window has a sample that is no number: in ONNX, Relu and MaxPool replace NaN by a number."""

    def __init__(self, network: torch.nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.network(signal)  # (n, E)
        return found + (signal - signal).sum((1, 2))[:, None]  # 0, or NaN


def export_onnx(loaded: LoadedEncoder, window: Window, path: Path) -> float:
    """Write an ONNX file, and return the largest difference to PyTorch. `loaded` must be on the CPU.

    Input `signal` (n, channel, sample) and output `embedding` (n, E), for any n; the property `clocs` has the metadata.
    Raises SettingsError, and writes nothing, where the two differ by more than TOLERANCE, and by more than rounding
    explains.
    """
    _refuse_without()
    model = _to_onnx(loaded, window)
    difference, rounding = _compare(loaded, window, model)
    most = max(TOLERANCE, _ROUNDING * rounding)
    if not difference <= most:  # refuses NaN, too
        raise SettingsError(
            f"The encoder {loaded.card.encoder!r} as ONNX differs from PyTorch by {difference:.2g}, more than "
            f"{most:.2g}, and was not written: something in it cannot be exported faithfully."
        )
    write_atomically(path, model)
    return difference


def _refuse_without() -> None:
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as problem:
        raise Unavailable(f"Exporting needs {problem.name}: `pip install 'clocs[onnx]'`.") from None


def _to_onnx(loaded: LoadedEncoder, window: Window) -> bytes:
    """Export to bytes by torch.export, in 5 s: a trace would fix the control flow that one example batch takes."""
    import onnx

    example = torch.zeros(2, loaded.card.input_channels, window.samples)
    with _quiet():
        try:
            program = torch.onnx.export(
                as_module(loaded, window),
                (example,),
                dynamo=True,
                verbose=False,
                optimize=False,  # it takes the 1e-8 away that keeps a flat window from a division by 0
                opset_version=_OPSET,
                input_names=["signal"],
                output_names=["embedding"],
                dynamic_shapes=({0: torch.export.Dim("n")},),
            )
        except torch.onnx.OnnxExporterError as problem:
            first = str(problem.__cause__ or problem).strip().splitlines()[0]
            raise SettingsError(f"The encoder {loaded.card.encoder!r} cannot be exported: {first}") from None
    assert program is not None
    model = program.model_proto
    onnx.helper.set_model_props(model, {"clocs": json.dumps(describe(loaded.card, window), ensure_ascii=False)})
    return bytes(model.SerializeToString())


def describe(card: EncoderCard, window: Window) -> dict[str, Any]:
    """Describe the file: the encoder's card without its run's settings, which name folders, and its input."""
    kept = attrs.asdict(card, filter=lambda field, _: field.name not in ("settings", "says_rate"))
    reads: dict[str, Any] = {"samples": window.samples, "sampling_rate": window.rate, "unit": card.unit}
    if card.framing.filters:
        reads["filtered"] = card.framing.filters  # in Hz; apply to the whole recording before windows are cut
    told: dict[str, Any] = as_plain(kept)  # JSON has no NaN
    return {**told, "input": {**reads, "channels": list(card.channels) if card.input_channels > 1 else ["any one"]}}


def _compare(loaded: LoadedEncoder, window: Window, model: bytes) -> tuple[float, float]:
    """Compare onnxruntime with NumPy's frames encoded by PyTorch, on TOLERANCE's scale; return the largest difference.

    And the largest of rounding: how far the same computation in PyTorch, resampling included, is from float64.
    """
    import onnxruntime

    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level = 3  # errors
    session = onnxruntime.InferenceSession(model, quiet, providers=["CPUExecutionProvider"])
    worst = rounding = 0.0
    by_pytorch, whole, cpu = as_trained(loaded.encoder, loaded.card), as_module(loaded, window), torch.device("cpu")
    for n in _TRIED:
        signal = _example(n, loaded.card.input_channels, window.samples)
        try:
            (found,) = session.run(None, {"signal": signal})
        except Exception as problem:  # onnxruntime's own, which have no common base
            raise SettingsError(
                f"The encoder {loaded.card.encoder!r} as ONNX cannot compute a batch of {n}, and was not written: "
                f"something in it cannot be exported faithfully ({str(problem).strip().splitlines()[0]})."
            ) from problem
        frames = np.concatenate([_frame(one, window.framing) for one in signal])
        expected = outputs_of(by_pytorch, frames.astype(np.float32), cpu)
        scale = max(1.0, np.abs(expected).max())
        worst = float(np.maximum(worst, np.abs(found - expected).max() / scale))
        rounding = max(rounding, float(np.abs(outputs_of(whole, signal, cpu) - _exact(loaded, frames)).max() / scale))
    signal[0, 0, 0], signal[1, 0, 0] = np.nan, np.inf
    if not np.isnan(session.run(None, {"signal": signal})[0][:2]).all():
        worst = float("nan")  # numbers of samples that are missing
    return worst, rounding


def _exact(loaded: LoadedEncoder, frames: NDArray[np.float64]) -> NDArray[np.float32]:
    """Encode frames in float64; in float32 where the encoder cannot."""
    double, cpu = as_trained(copy.deepcopy(loaded.encoder).double(), loaded.card), torch.device("cpu")
    try:
        return outputs_of(double, frames, cpu)
    except (RuntimeError, ValueError):  # a layer of somebody's own, for float32 alone
        return outputs_of(as_trained(loaded.encoder, loaded.card), frames.astype(np.float32), cpu)


def _example(n: int, channels: int, samples: int) -> NDArray[np.float32]:
    """Make random-walk signals with an offset, like ECG baselines; of several, the last is flat, as a detached lead."""
    steps = np.random.default_rng(n).normal(size=(n, channels, samples))
    made = (3 + 0.1 * steps.cumsum(axis=2)).astype(np.float32)
    made[1:][-1:] = 0.0
    return made


def _frame(signal: NDArray[np.float32], framing: Framing) -> NDArray[np.float64]:
    """Cut the one frame (1, channel, sample) of a window (channel, sample), by the code that prepares recordings."""
    names = tuple(map(str, range(len(signal))))
    return cut_frames(Record("", "", names, "", 1.0, signal.astype(np.float64)), framing).samples.astype(np.float64)


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide the exporter's messages on torch's own deprecations and on packages that are not needed here."""
    log = logging.getLogger("torch.onnx._internal.exporter._registration")  # "torchvision is not installed. Skipping"
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(before)
