"""Time training in recordings per second, methods by encoders, on recordings as PTB-XL has them.

    python benchmarks/throughput.py --device cuda --json benchmarks/results/throughput.json

A recording has 12 leads of 10 s at 100 Hz. A step takes 256 recordings, in bf16: gather, views, normalisation, encoder,
objective, gradients, optimiser. Steps are captured on a GPU, or plain where the method or the encoder cannot be. The
median of several epochs counts, with quartiles. A method that an encoder cannot serve has the reason instead.
"""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path

import torch
from command_line import command_line
from step import machine_of, plan_of, refuse, timed_epochs, training_on

from clocs_core.errors import ClocsError
from clocs_core.train.captured import CapturedEpochs
from clocs_core.train.epochs import RunEpoch, plain_epoch

LEADS = ("I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")
ENCODERS = ("xresnet1d", "s4d", "vit1d")
WHOLE, HALVES, QUARTERS = 1000, 500, 250
"""Samples of a frame: a recording, its halves or its quarters as segments."""
METHODS = {
    "supervised": WHOLE,
    "cmsc": HALVES,
    "pclr": WHOLE,
    "simclr": WHOLE,
    "byol": WHOLE,
    "vicreg": HALVES,
    "vicreg-many": QUARTERS,
    "moco": HALVES,
    "comet": HALVES,
    "3kg": WHOLE,
    "cpc": WHOLE,
    "jepa": WHOLE,
    "mae": WHOLE,
    "rhythm-and-patient": HALVES,
}
BATCH = 256


def main() -> int:
    """Time every pair, print and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--encoders", nargs="*", default=ENCODERS)
    parser.add_argument("--methods", nargs="*", default=tuple(METHODS))
    parser.add_argument("--steps", type=int, default=10, help="steps per epoch")
    parser.add_argument("--repeats", type=int, default=5, help="epochs that are timed")
    parser.add_argument("--batch", type=int, default=BATCH, help="recordings per step")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    device = torch.device(given.device)
    found: dict[str, object] = {"command": command_line(__file__), "date": datetime.now(UTC).date().isoformat()}
    found |= {"machine": machine_of(device), "batch": given.batch, "steps": given.steps, "repeats": given.repeats}
    rows = found["rows"] = []
    for method in given.methods:
        for encoder in given.encoders:
            rows.append({"method": method, "encoder": encoder, **measure(method, encoder, given, device)})
            print(rows[-1], flush=True)
            if given.json:  # after every row: time on a GPU may be over before the last one
                given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


def measure(method: str, encoder: str, given: argparse.Namespace, device: torch.device) -> dict[str, object]:
    """Time the steps of a pair: recordings per second, with quartiles; or say why it cannot be trained."""
    options = [f"encoder={encoder}", f"frame_samples={METHODS[method]}", "autocast=bf16", "constant=1"]
    try:
        plan = plan_of(method, LEADS, options, device)
        batch = max(1, given.batch // plan.needs.recordings)  # `pclr` has two recordings in an instance
        training = training_on(plan, batch * given.steps, device, batch)
        how = "captured" if device.type == "cuda" else "plain"
        try:
            seconds = timed_epochs(plan, training, _runner(device), device, given.repeats)
        except RuntimeError as problem:
            if device.type != "cuda" or isinstance(problem, torch.OutOfMemoryError):
                raise
            how, seconds = f"plain: {problem}", timed_epochs(plan, training, plain_epoch, device, given.repeats)
    except (ClocsError, ValueError) as problem:
        return {"refused": str(problem).splitlines()[0]}
    size = batch * plan.needs.recordings * given.steps
    return {"recordings_per_second": [round(size / one) for one in reversed(seconds)], "steps": how}


def _runner(device: torch.device) -> RunEpoch:
    return CapturedEpochs(refuse) if device.type == "cuda" else plain_epoch


if __name__ == "__main__":
    raise SystemExit(main())
