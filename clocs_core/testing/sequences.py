"""Rules for the sequences of encoders: signals of any length in, (n, time, width) out, `stride` samples apart."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from clocs_core.testing.checks import expect
from clocs_core.testing.encoder_case import ROWS, SAMPLES, EncoderCase, skip_unless
from clocs_core.testing.tensors import close, equal, refuse_host_sync, refuse_named_devices, refuse_other_devices

LONG = 2500  # samples
FEWEST = 8  # positions; in a shorter sequence the place of a change cannot be told
NEAR = 2  # positions: convolutions reach a little further than their stride


def _sequence_shape(case: EncoderCase) -> None:
    """sequence(signal) is float32 (n, time, width) for signals of any length; time is samples / stride, rounded up."""
    for channels in (1, 3):
        made = case.build(channels).eval()
        stride, width = _sizes(made)
        for samples in (SAMPLES, 2 * SAMPLES + 7, max(stride, SAMPLES // 2 + 3)):
            found = _sequence(made)(case.signal(channels, samples))
            shape, expected = tuple(found.shape), (ROWS, -(-samples // stride), width)
            asked = f"{expected} for {channels} channels, {samples} samples and stride {stride}"
            expect(shape == expected, asked, shape, "Pad the signal, so that a position begins every `stride` samples.")
            expect(found.dtype == torch.float32, "torch.float32", found.dtype, "Do not convert inside the encoder.")


def _sequence_stride(case: EncoderCase) -> None:
    """Position t describes the samples from t * stride on: a change there changes this position most."""
    made = case.build(samples=LONG).eval()
    stride, _ = _sizes(made)
    signal = case.signal(samples=LONG)
    sequence = _sequence(made)(signal)
    if sequence.shape[1] < FEWEST:
        return
    skip_unless(close(_sequence(made)(signal.clone()), sequence), "sequence-eval-is-deterministic")
    for t in (sequence.shape[1] * part // 4 for part in (1, 2, 3)):
        other = signal.clone()
        other[..., t * stride : (t + 1) * stride] += 1.0
        other[..., t * stride : (t + 1) * stride : 2] -= 2.0  # no mean, which a norm may remove
        change = (_sequence(made)(other) - sequence).square().sum((0, 2))  # (time,)
        place = int(change.argmax())
        asked = f"samples from {t * stride} on to change position {t} most"
        expect(
            abs(place - t) <= NEAR, asked, f"position {place}", "Position t describes the samples from t * stride on."
        )


def _sequence_causal(case: EncoderCase) -> None:
    """In the sequence of an encoder with `causal = True`, position t sees no sample from (t + 1) * stride on."""
    made = case.build(samples=LONG).eval()
    if not getattr(made, "causal", False):
        return
    stride, _ = _sizes(made)
    signal = case.signal(samples=LONG)
    sequence = _sequence(made)(signal)
    for t in (0, sequence.shape[1] // 2):
        other = signal.clone()
        other[..., (t + 1) * stride :] += 1.0
        change = float((_sequence(made)(other) - sequence)[:, : t + 1].detach().abs().max())
        rounding = 1e-4 * (1 + float(sequence.detach().abs().max()))  # an FFT in float32 spreads its rounding errors
        expect(
            change <= rounding,
            f"positions up to {t} that do not see samples from {(t + 1) * stride} on",
            f"a change by {change:.3g}",
            "Pad convolutions at the front only, or do not call the encoder causal.",
        )


def _sequence_eval_is_deterministic(case: EncoderCase) -> None:
    """In evaluation, the same signals give the same sequences."""
    made, signal = case.build().eval(), case.signal()
    same = equal(_sequence(made)(signal.clone()), _sequence(made)(signal.clone()))
    expect(same, "equal sequences", "different ones", "Draw nothing in eval mode; use nn.Dropout, not F.dropout.")


def _sequence_rows_are_independent(case: EncoderCase) -> None:
    """In evaluation, a sequence does not depend on the other rows of the batch."""
    made, signal = case.build().eval(), case.signal()
    together = _sequence(made)(signal.clone())
    skip_unless(close(_sequence(made)(signal.clone()), together), "sequence-eval-is-deterministic")
    alone = torch.cat([_sequence(made)(row[None].clone()) for row in signal])
    advice = "In eval mode, normalise by running statistics or within a row, never over the batch."
    expect(close(alone, together), "each row as if it were alone", "a dependence on its neighbours", advice)


def _sequence_gives_representation(case: EncoderCase) -> None:
    """In evaluation, `of_sequence`, where an encoder has it, makes of a sequence what forward makes of its signals."""
    made, signal = case.build().eval(), case.signal()
    found = getattr(made, "of_sequence", None)
    if found is None:
        return
    same = close(found(_sequence(made)(signal.clone())), made(signal.clone()))
    expect(same, "the representations of forward", "others", "Let forward call `of_sequence(self.sequence(signal))`.")


def _sequence_gradient(case: EncoderCase) -> None:
    """In training, the gradient of a sequence reaches the encoder's parameters and is finite."""
    made = case.build().train()
    output = _sequence(made)(case.signal())
    expect(output.requires_grad, "a sequence with a gradient", "none", "Do not detach, and use no no_grad.")
    output.square().sum().backward()
    found = [one.grad for one in made.parameters() if one.grad is not None]
    reached = any(bool(one.abs().sum() > 0) for one in found) and all(bool(one.isfinite().all()) for one in found)
    expect(reached, "finite gradients of the parameters", "none, or others", "Use the layers that forward uses.")


def _sequence_device(case: EncoderCase) -> None:
    """Every tensor of a sequence is created on the device of the signal."""
    made, signal = case.build().eval(), case.signal()
    refuse_other_devices(lambda: _sequence(made)(signal), signal.device)
    refuse_named_devices(lambda move: _sequence(case.build().eval().to("meta"))(move(signal)))


def _sequence_no_host_sync(case: EncoderCase) -> None:
    """A sequence causes no host sync, in training or in evaluation."""
    for made in (case.build().train(), case.build().eval()):
        refuse_host_sync(lambda fake, made=made: _sequence(made)(fake(case.signal())))  # type: ignore[misc]


def _sizes(made: nn.Module) -> tuple[int, int]:
    """Return stride and width. Both are known without encoding anything."""
    found = [getattr(made, name, None) for name in ("stride", "width")]
    whole = all(type(one) is int and one > 0 for one in found)
    expect(whole, "two positive integers, `stride` and `width`", found, "Set both in __init__.")
    return found[0], found[1]  # type: ignore[return-value]  # two integers, as was just checked


def _sequence(made: nn.Module) -> Callable[[Tensor], Tensor]:
    call = getattr(made, "sequence", None)
    expect(callable(call), "a method `sequence`", "none", "Define it, or offer the encoder with sequence=False.")
    assert callable(call)
    return call  # type: ignore[no-any-return]  # a method of the plugin
