"""A method of masks over an encoder's sequence runs as a stranger's plugin, and survives an interruption to the bit."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from fake_plugins import fake_point
from safetensors.torch import load_file

from clocs_core import EpochDone, Method, Objective, RunStarted, ViewGenerator
from clocs_core.cli import main
from clocs_core.plugins.host import installed_entry_points

pytestmark = pytest.mark.usefixtures("no_pictures")  # no test here looks at them


def build_masked(options, setup):
    from torch import nn

    class Masked(nn.Module):
        """Reconstructs the signal of masked positions from the sequence; the mask follows a schedule in a buffer."""

        def __init__(self):
            super().__init__()
            self.stride = setup.encoder.stride
            self.head = nn.Linear(setup.encoder.width, self.stride)
            self.register_buffer("share", torch.zeros(()))

        def forward(self, encode, views, generator):
            whole = views.signal.shape[-1] // self.stride * self.stride
            signal = views.signal[..., :whole]  # (view, batch, 1, sample)
            truth = signal.unflatten(-1, (-1, self.stride))[:, :, 0]  # (view, batch, time, stride)
            hidden = torch.rand(truth.shape[:3], generator=generator, device=signal.device) < 0.3 + self.share
            mask = hidden.repeat_interleave(self.stride, -1)[:, :, None]
            error = (self.head(encode.sequence(signal.masked_fill(mask, 0.0))) - truth).square().mean(-1)
            loss = (error * hidden).sum() / hidden.sum().clamp(min=1)
            return loss, {"hidden": hidden.float().mean()}

        def after_step(self, encoder):
            self.share.add_(0.3 / setup.steps)

    return Masked()


def needs(options):
    from clocs_core import Needs

    return Needs()


def as_view(batch, generator):
    from clocs_core import Views

    return Views(batch.signal.transpose(0, 1), batch)


def build_frame(options):
    return as_view


class Stop:
    """Presses Ctrl-C after an epoch, once; keeps the components of every epoch."""

    def __init__(self, after: int = 0) -> None:
        self.after, self.components = after, {}  # type: tuple[int, dict[int, dict[str, float]]]

    def point(self):
        return fake_point(
            "masked",
            clocs_views=lambda: [ViewGenerator(name="frame", summary="s", needs=needs, build=build_frame)],
            clocs_objectives=lambda: [Objective(name="masked", summary="s", build=build_masked, sequence=True)],
            clocs_methods=lambda: [
                Method(
                    name="masked",
                    summary="s",
                    views="frame",
                    encoder="resnet1d",
                    objective="masked",
                    presets={"encoder": {"widths": [4, 6], "blocks": 1}},
                )
            ],
            clocs_epoch_done=lambda run, epoch: self.hear(run, epoch),
        )

    def hear(self, run: RunStarted, epoch: EpochDone) -> None:
        self.components[epoch.epoch] = dict(epoch.components)
        if epoch.epoch == self.after:
            raise KeyboardInterrupt


def begin(folder: Path, stop: Stop, *words: str) -> int:
    points = [point for point in installed_entry_points() if point.name != "tensorboard"]
    return main(["run", *words], [*points, stop.point()])


@pytest.mark.slow
def test_masks_and_their_schedule_survive_an_interruption(tmp_path):
    """Weights, best encoder and components are those of a run that nobody interrupted."""
    words = (
        "--plugin masked --dataset demo -o patients=12 --epochs 4 --batch-size 16 -o embedding_dim=8 -o resamples=20"
    )
    common = [*words.split(), "--channels", "II", "--device", "cpu", "--data-root", str(tmp_path / "data")]
    whole, first, second = Stop(), Stop(after=2), Stop()
    assert begin(tmp_path, whole, *common, "--out", str(tmp_path / "whole")) == 0
    assert begin(tmp_path, first, *common, "--out", str(tmp_path / "cut")) == 130
    assert begin(tmp_path, second, "--resume", str(tmp_path / "cut")) == 0
    for name in ("encoder.safetensors", "checkpoint.safetensors"):
        if (tmp_path / "whole" / name).exists():
            ours, theirs = (load_file(tmp_path / run / name) for run in ("cut", "whole"))
            assert all(torch.equal(ours[key], theirs[key]) for key in theirs), name
    assert {**first.components, **second.components} == whole.components
    hidden = [whole.components[epoch]["hidden"] for epoch in (1, 2, 3, 4)]
    assert 0.3 < hidden[0] < hidden[1] < hidden[2] < hidden[3] < 0.6
