"""The curve of fine-tuning: all of the validation part, scored against loops; nothing made twice; kept over kills."""

import itertools
import math

import numpy as np
import pytest
import torch
from fake_frames import ANY_OF, TASK, fake_cohort
from finetune_oracle import DIM, loss_in_loops, signals_and_labels, simple_encoder
from torch import nn

from clocs_core import seeds
from clocs_core.artifacts.curves import curve_beside, read_curve
from clocs_core.evaluation.finetune import FineTuning, fine_tune
from clocs_core.evaluation.labelled_frames import list_labelled_frames
from clocs_core.settings.sections import TrainSettings
from clocs_core.train.epochs import plain_epoch
from clocs_core.train.normalise import leave

CPU = torch.device("cpu")


@pytest.fixture(scope="module", params=[TASK, ANY_OF], ids=["one of", "any of"])
def bench(request, tmp_path_factory):
    return list_labelled_frames(fake_cohort(tmp_path_factory.mktemp("frames"), (), request.param), False, leave, CPU)


def certainty(probability, _label, _weight):
    """A metric that tells epochs apart and is quick."""
    return float(probability.max(1).mean())


def tune(bench, network=None, clock=None, epochs=4, score=certainty, **more):
    rows = np.arange(len(bench.parts["train"]))
    how = TrainSettings(epochs=epochs, batch_size=16, learning_rate=1e-2, patience=15)
    tuning = FineTuning(
        embedding_dim=DIM, settings=how, seed=0, scored="test", run_epoch=plain_epoch,
        clock=clock or itertools.count().__next__, tick=lambda step, steps: None, score=score, **more,
    )  # fmt: skip
    return fine_tune(network or simple_encoder(dropout=0.3), bench, rows, tuning)


# ------------------------------------------------------------------------------------------------------ against a loop


def hope(probability, label, _weight):
    """A metric: how probable what is there is said to be, mean over rows and classes."""
    if label.ndim == 1:
        return float(probability[np.arange(len(label)), label].mean())
    return float(np.where(label == 1, probability, 1 - probability).mean())


def hope_in_loops(logits, labels):
    """The same of logits, by softmax or a sigmoid per class."""
    terms = []
    for row, label in zip(logits.tolist(), labels, strict=True):
        if label.dim() == 0:
            terms.append(math.exp(row[int(label)]) / sum(map(math.exp, row)))
        else:
            each = [1 / (1 + math.exp(-one)) for one in row]
            terms += [p if there == 1 else 1 - p for p, there in zip(each, label.tolist(), strict=True)]
    return sum(terms) / len(terms)


def test_every_epoch_has_the_losses_and_the_score_of_a_loop_written_out(bench):
    """Trained and scored here by hand: the weights after each epoch, not the best ones, on all validation frames."""
    found = tune(bench, simple_encoder(), epochs=3, score=hope)
    mine = simple_encoder()
    torch.manual_seed(seeds.derive(0, "head"))
    head = nn.Linear(DIM, 3)
    optimiser = torch.optim.Adam([*mine.parameters(), *head.parameters()], lr=1e-2)
    count = len(bench.parts["train"])
    held_out, truth = signals_and_labels(bench, "validation", range(len(bench.parts["validation"])))
    assert [point.epoch for point in found.curve] == [1, 2, 3]
    for epoch, point in enumerate(found.curve, start=1):
        order = torch.randperm(count, generator=torch.Generator().manual_seed(seeds.derive(0, "order", epoch)))
        total = 0.0
        for start in range(0, count, 16):
            signal, label = signals_and_labels(bench, "train", order[start : start + 16])
            optimiser.zero_grad()
            loss = loss_in_loops(head(mine(signal)), label)
            loss.backward()
            optimiser.step()
            total += float(loss.detach()) * len(label)
        with torch.no_grad():
            logits = head(mine(held_out))
        assert point.train_loss == pytest.approx(total / count, rel=1e-4)
        assert point.validation_loss == pytest.approx(float(loss_in_loops(logits, truth)), rel=1e-4)
        assert point.validation_score == pytest.approx(hope_in_loops(logits, truth), rel=1e-4)


def test_the_score_is_of_every_validation_frame_with_its_own_label(bench, monkeypatch):
    """Health looks at the first thousand only, and comes from the same pass."""
    monkeypatch.setattr("clocs_core.train.health.MEASURED", 2)
    seen = []

    def remember(probability, label, weight):
        seen.append((probability, label, weight))
        return 0.5

    tune(bench, epochs=2, score=remember)
    _, truth = signals_and_labels(bench, "validation", range(len(bench.parts["validation"])))
    assert len(seen) == 2
    for probability, label, weight in seen:
        np.testing.assert_array_equal(label, truth.numpy())
        assert probability.shape == (len(truth), 3)
        assert weight.tolist() == [1.0] * len(truth)


def test_scoring_costs_no_second_pass_and_changes_nothing(bench):
    """The network sees as many batches as without a score, and ends with the same weights, to the last bit."""
    calls, weights, progress = [], [], []
    for score in (None, certainty):
        network, seen = simple_encoder(dropout=0.3), []
        network.register_forward_pre_hook(lambda module, _given, seen=seen: seen.append(module.training))
        found = tune(bench, network, score=score)
        calls.append(seen)
        weights.append(found.classifier.state_dict())
        progress.append(found.progress)
    assert calls[0] == calls[1]
    assert progress[0] == progress[1]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_without_a_metric_the_curve_has_losses_alone(bench):
    points = tune(bench, score=None).curve
    assert len(points) == 4
    assert all(math.isnan(point.validation_score) and point.validation_loss > 0 for point in points)


# ------------------------------------------------------------------------------------------------------------- a kill


@pytest.mark.parametrize("killed_after", [1, 2, 5])
def test_a_kill_in_the_middle_keeps_the_curve(bench, tmp_path, killed_after):
    """It goes on from the checkpoint and ends as that of a training that nobody stopped, to the last bit."""
    whole = tune(bench, epochs=7).curve
    path, minutes = tmp_path / "finetune-random-0.5.safetensors", itertools.count(step=60).__next__

    def interrupt(done):
        if done.epoch == killed_after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(bench, clock=minutes, epochs=7, checkpoint=path, epoch_done=interrupt)
    assert path.exists() == (killed_after > 1)
    assert read_curve(curve_beside(path)) == whole[: killed_after - 1]
    assert tune(bench, epochs=7, checkpoint=path).curve == whole
    assert read_curve(curve_beside(path)) == whole  # that of a training that is over, but not yet finished with


def test_a_kill_between_curve_and_checkpoint_repeats_the_epochs_that_the_checkpoint_lacks(bench, tmp_path, monkeypatch):
    """The two are two files; whichever moment it is, no epoch stands twice and none is missing."""
    whole = tune(bench, epochs=5).curve
    path, minutes = tmp_path / "checkpoint.safetensors", itertools.count(step=60).__next__
    from clocs_core.evaluation import finetune

    def die(learner, where, log):
        if learner.progress.epoch == 3:
            raise KeyboardInterrupt
        real(learner, where, log)

    with monkeypatch.context() as patch:
        real = finetune.save_checkpoint
        patch.setattr(finetune, "save_checkpoint", die)
        with pytest.raises(KeyboardInterrupt):
            tune(bench, clock=minutes, epochs=5, checkpoint=path)
    assert len(read_curve(curve_beside(path))) == 3
    resumed = tune(bench, epochs=5, checkpoint=path)
    assert resumed.curve == whole
    assert resumed.earlier >= 2 * 60  # each epoch took some minutes of that clock
