"""Rules for encoders: any number of channels in, (n, embedding_dim) out, rows independent in eval mode."""

from __future__ import annotations

from typing import Any

import torch

from clocs_core.contracts.offers import Encoder
from clocs_core.testing import sequences
from clocs_core.testing.checks import Check, expect, label_of, make_checks, rules_of
from clocs_core.testing.encoder_case import ROWS, SAMPLES, EncoderCase, skip_unless
from clocs_core.testing.pace import Clock, expect_quick
from clocs_core.testing.tensors import close, equal, refuse_host_sync, refuse_named_devices, refuse_other_devices

TINY = 4  # samples: shorter than any kernel; an encoder may refuse such frames


def checks_of_encoder(offer: Encoder, options: Any, clock: Clock) -> list[Check]:
    """Return the checks of an encoder, and those of its sequence if it has one."""
    case, rules = EncoderCase(offer, options, clock), rules_of(__name__)
    return make_checks(label_of(offer), rules + rules_of(sequences.__name__) * offer.sequence, case)


def _shape(case: EncoderCase) -> None:
    """(n, channel, sample) becomes (n, embedding_dim), for 1 and 3 channels, 2500 and 1000 samples, 16 and 64 dim."""
    for channels, samples, dim in ((1, 2500, 16), (3, 2500, 64), (3, 1000, 16), (1, 1000, 64)):
        found = tuple(case.build(channels, samples, dim).eval()(case.signal(channels, samples)).shape)
        asked = f"{channels} channels, {samples} samples, embedding_dim {dim}"
        expect(found == (ROWS, dim), f"{(ROWS, dim)} for {asked}", found, "Size the layers by build's arguments.")


def _short_frames(case: EncoderCase) -> None:
    """A frame that is too short is encoded, or refused by build with a ValueError that says why."""
    try:
        made = case.build(samples=TINY)
    except ValueError as problem:
        expect(bool(str(problem)), "a message", "none", "Say how many samples the encoder needs.")
        return
    found = tuple(made.eval()(case.signal(samples=TINY)).shape)
    expect(found == (ROWS, 16), f"{(ROWS, 16)}, or a ValueError of build", found, "Refuse short frames in build.")


def _dtype(case: EncoderCase) -> None:
    """Float32 signals give float32 representations."""
    found = case.build().eval()(case.signal()).dtype
    expect(found == torch.float32, "torch.float32", found, "Do not convert inside the encoder.")


def _finite(case: EncoderCase) -> None:
    """Finite signals, flat ones included, give finite representations."""
    for made in (case.build().eval(), case.build().train()):
        finite = bool(made(case.signal()).isfinite().all())
        expect(finite, "finite representations", "a NaN or an infinity", "Guard divisions against flat signals.")


def _gradient(case: EncoderCase) -> None:
    """In training, every parameter that requires a gradient gets one, and it is finite."""
    made = case.build().train()
    wanted = {name: parameter for name, parameter in made.named_parameters() if parameter.requires_grad}
    output = made(case.signal())
    expect(output.requires_grad, "a representation with a gradient", "none", "Do not detach, and use no no_grad.")
    output.square().sum().backward()
    missed = [name for name, parameter in wanted.items() if parameter.grad is None]
    expect(not missed, "a gradient for every parameter", f"none for {', '.join(missed)}", "Use them, or freeze them.")
    skip_unless(bool(output.isfinite().all()), "finite")
    odd = [name for name, one in wanted.items() if one.grad is not None and not one.grad.isfinite().all()]
    expect(not odd, "finite gradients", f"others for {', '.join(odd)}", "Guard divisions and square roots.")


def _rows_are_independent(case: EncoderCase) -> None:
    """In evaluation, a representation does not depend on the other rows of the batch."""
    made, signal = case.build().eval(), case.signal()
    together = made(signal.clone())
    skip_unless(close(made(signal.clone()), together), "eval-is-deterministic")
    alone = torch.cat([made(row[None].clone()) for row in signal])
    expect(
        close(alone, together),
        "each row to be encoded as if it were alone",
        "a dependence on its neighbours",
        "In eval mode, normalise by running statistics or within a row, never over the batch.",
    )


def _eval_is_deterministic(case: EncoderCase) -> None:
    """In evaluation, the same signals give the same representations."""
    made, signal = case.build().eval(), case.signal()
    same = equal(made(signal.clone()), made(signal.clone()))
    expect(same, "equal representations", "different ones", "Draw nothing in eval mode; use nn.Dropout, not F.dropout.")


def _state(case: EncoderCase) -> None:
    """The state dict is complete: a second encoder that loads it gives the same representations."""
    first, second, signal = case.build(seed=0), case.build(seed=1), case.signal()
    second.load_state_dict(first.state_dict())
    expected = first.eval()(signal.clone())
    skip_unless(close(first(signal.clone()), expected, 1e-6), "eval-is-deterministic")
    expect(
        close(second.eval()(signal.clone()), expected, 1e-6),
        "equal representations after loading the state",
        "different ones",
        "Keep every tensor as an nn.Parameter or a registered buffer.",
    )


def _seeded(case: EncoderCase) -> None:
    """Two encoders built under the same torch.manual_seed have the same weights."""
    first, second = case.build(seed=2).state_dict(), case.build(seed=2).state_dict()
    odd = [name for name in first if name not in second or not torch.equal(first[name], second[name])]
    expect(not odd, "equal weights under equal seeds", f"others in {', '.join(odd)}", "Draw from torch's generator.")


def _signal_unchanged(case: EncoderCase) -> None:
    """The signal is not modified."""
    made, signal = case.build().eval(), case.signal()
    before = signal.clone()
    made(signal)
    expect(torch.equal(signal, before), "the input as it was", "other values", "Use no in-place op on the input.")


def _device(case: EncoderCase) -> None:
    """Every tensor is created on the device of the signal."""
    made, signal = case.build().eval(), case.signal()
    refuse_other_devices(lambda: made(signal), signal.device)
    refuse_named_devices(lambda move: case.build().eval().to("meta")(move(signal)))


def _no_host_sync(case: EncoderCase) -> None:
    """No host sync, in training or in evaluation."""
    for made in (case.build().train(), case.build().eval()):
        refuse_host_sync(lambda fake, made=made: made(fake(case.signal())))  # type: ignore[misc]


def _quick(case: EncoderCase) -> None:
    """A few short signals take little processor time."""
    made, signal = case.build().eval(), case.signal()
    expect_quick(
        lambda: made(signal),
        f"{ROWS} frames of {SAMPLES} samples",
        "Encode all rows at once, without loops.",
        case.clock,
    )
