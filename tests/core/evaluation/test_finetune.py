"""Fine-tuning against a training loop written out here; early stopping, going on, and what is predicted."""

import itertools
import math
import threading

import attrs
import numpy as np
import pytest
import torch
from fake_frames import AGE, ANY_OF, FRAME, TASK, fake_cohort
from finetune_oracle import DIM, loss_in_loops, signals_and_labels, simple_encoder
from torch import nn

from clocs_core import Task, seeds
from clocs_core.artifacts.partial_input import Reading
from clocs_core.errors import OutOfMemory, SettingsError
from clocs_core.evaluation.finetune import FineTuning, build_classifier, fine_tune, layer_factors, predict
from clocs_core.evaluation.labelled_frames import list_labelled_frames
from clocs_core.settings.sections import TrainSettings
from clocs_core.testing.threads import on_ranks
from clocs_core.train.epochs import plain_epoch
from clocs_core.train.normalise import leave, min_max

CPU = torch.device("cpu")


@pytest.fixture(scope="module", params=[TASK, ANY_OF], ids=["one of", "any of"])
def bench(request, tmp_path_factory):
    return list_labelled_frames(
        fake_cohort(tmp_path_factory.mktemp("frames"), {"r0-0"}, request.param), False, leave, CPU
    )


def noisy_encoder(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Flatten(), nn.Linear(FRAME, DIM), nn.BatchNorm1d(DIM), nn.ReLU(), nn.Dropout(0.3))


def tune(bench, encoder, rows=None, seed=0, run_epoch=plain_epoch, clock=None, **settings):
    given = {"epochs": 4, "batch_size": 16, "learning_rate": 1e-2, "patience": 15}
    how = {key: settings.pop(key) for key in ("epoch_done", "checkpoint", "layer_decay", "group") if key in settings}
    rows = np.arange(len(bench.parts["train"])) if rows is None else rows
    tuning = FineTuning(
        embedding_dim=DIM, settings=TrainSettings(**(given | settings)), seed=seed, scored="test", run_epoch=run_epoch,
        clock=clock or itertools.count().__next__, tick=lambda step, steps: None, **how,
    )  # fmt: skip
    return fine_tune(encoder, bench, rows, tuning)


def weights(module):
    return {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}


def same(first, second):
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


# ------------------------------------------------------------------------------------------------ several processes


@pytest.mark.parametrize("count", [2, 3])
def test_several_processes_train_the_classifier_of_one(bench, tmp_path, monkeypatch, count):
    """Batches of 16 do not divide by three, and the last batch is ragged. Process 0 alone writes a checkpoint."""
    lock = threading.Lock()  # threads share torch's default generator, which draws the head

    def one_at_a_time(*given):
        with lock:
            return build_classifier(*given)

    monkeypatch.setattr("clocs_core.evaluation.finetune.build_classifier", one_at_a_time)
    encoders = [simple_encoder() for _ in range(count)]
    files = [tmp_path / f"{rank}.safetensors" for rank in range(count)]
    alone = tune(bench, simple_encoder())
    several = on_ranks(
        count, lambda group: tune(bench, encoders[group.rank], group=group, checkpoint=files[group.rank])
    )
    for one in several:
        for name, tensor in alone.classifier.state_dict().items():
            torch.testing.assert_close(one.classifier.state_dict()[name], tensor, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(one.predictions.probability, alone.predictions.probability, atol=1e-5)
        np.testing.assert_array_equal(one.predictions.record, alone.predictions.record)
        assert [point.epoch for point in one.curve] == [point.epoch for point in alone.curve]
    assert [file.exists() for file in files] == [True] + [False] * (count - 1)


def test_a_process_that_cannot_see_the_checkpoint_is_refused(bench, tmp_path):
    tune(bench, simple_encoder(), checkpoint=tmp_path / "0.safetensors", epochs=1)
    encoders = [simple_encoder() for _ in range(2)]
    with pytest.raises(SettingsError, match="epochs trained = 1"):
        on_ranks(
            2,
            lambda group: tune(
                bench, encoders[group.rank], group=group, checkpoint=tmp_path / f"{group.rank}.safetensors"
            ),
        )


# ---------------------------------------------------------------------------------------------------- against a loop


def test_weights_are_those_of_a_plain_loop_of_adam_over_encoder_and_head(bench):
    """Batches in the seed's order, all weights in one optimiser, the task's own loss: nothing more."""
    rows = np.arange(0, len(bench.parts["train"]), 2)
    found = tune(bench, simple_encoder(), rows, epochs=1)
    encoder = simple_encoder()
    torch.manual_seed(seeds.derive(0, "head"))
    head = nn.Linear(DIM, 3)
    optimiser = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=1e-2)
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(seeds.derive(0, "order", 1)))
    for start in range(0, len(rows), 16):
        signal, label = signals_and_labels(bench, "train", rows[order[start : start + 16].numpy()])
        optimiser.zero_grad()
        loss_in_loops(head(encoder(signal)), label).backward()
        optimiser.step()
    for part, expected in (("encoder", encoder), ("head", head)):
        for name, tensor in expected.state_dict().items():
            torch.testing.assert_close(found.classifier.state_dict()[f"{part}.{name}"], tensor, rtol=1e-4, atol=1e-6)
    assert found.steps == -(-len(rows) // 16)


class Blocks(nn.Module):
    """An encoder with a weight of its own, a layer, a list of layers, and something without weights."""

    def __init__(self):
        super().__init__()
        self.position = nn.Parameter(torch.zeros(1))
        self.flat = nn.Flatten()
        self.stem = nn.Linear(FRAME, 4)
        self.stages = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, DIM))

    def forward(self, signal):
        return self.stages(self.stem(self.flat(signal)) + self.position)


def test_earlier_blocks_of_an_encoder_learn_by_a_smaller_rate():
    encoder = Blocks()
    found = layer_factors(encoder, 0.5)
    assert found[encoder.stages[2].weight] == found[encoder.stages[2].bias] == 0.5
    assert found[encoder.stages[0].weight] == 0.25
    assert found[encoder.stem.weight] == found[encoder.position] == 0.125
    assert set(found) == set(encoder.parameters())


def test_an_encoder_that_reads_means_of_samples_has_the_blocks_of_the_one_inside():
    """It has no weights of its own: all of them would have learnt at one rate."""
    inside = Blocks()
    whole = Reading(inside, 0, None, 2)
    assert layer_factors(whole, 0.5) == layer_factors(inside, 0.5)
    assert set(layer_factors(whole, 0.5)) == set(whole.parameters())


def test_a_step_by_layer_moves_every_weight_by_its_share_of_the_rate(bench):
    """The first step of Adam moves a weight by its rate, whatever its gradient; the head by all of it."""
    encoder = Blocks()
    before = weights(encoder)
    found = tune(bench, encoder, np.arange(16), epochs=1, layer_decay=0.5, keep="last").classifier
    moved = {name: (tensor - before[name]).abs().max().item() for name, tensor in found.encoder.state_dict().items()}
    assert moved["stages.2.weight"] == pytest.approx(0.5e-2, rel=1e-3)
    assert moved["stages.0.weight"] == pytest.approx(0.25e-2, rel=1e-3)
    assert moved["stem.weight"] == pytest.approx(0.125e-2, rel=1e-3)


def test_fine_tuning_has_the_optimiser_of_its_settings(bench):
    """AdamW with a schedule, as a loop of torch's has it."""
    rows = np.arange(len(bench.parts["train"]))
    found = tune(bench, simple_encoder(), rows, epochs=1, optimiser="adamw", weight_decay=0.5, warm_up=4, keep="last")
    encoder = simple_encoder()
    torch.manual_seed(seeds.derive(0, "head"))
    head = nn.Linear(DIM, 3)
    both = [*encoder.parameters(), *head.parameters()]
    groups = [{"params": [one]} | ({"weight_decay": 0.0} if one.ndim < 2 else {}) for one in both]
    optimiser = torch.optim.AdamW(groups, lr=1e-2, weight_decay=0.5)
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(seeds.derive(0, "order", 1)))
    for step, start in enumerate(range(0, len(rows), 16), start=1):
        signal, label = signals_and_labels(bench, "train", rows[order[start : start + 16].numpy()])
        for group in optimiser.param_groups:
            group["lr"] = 1e-2 * min(1, step / 4)
        optimiser.zero_grad()
        loss_in_loops(head(encoder(signal)), label).backward()
        optimiser.step()
    for part, expected in (("encoder", encoder), ("head", head)):
        for name, tensor in expected.state_dict().items():
            torch.testing.assert_close(found.classifier.state_dict()[f"{part}.{name}"], tensor, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("normalise", [leave, min_max])
def test_frames_are_normalised_in_training_as_they_are_in_prediction(bench, normalise):
    ranges = {True: [], False: []}

    class Watching(nn.Flatten):
        def forward(self, signal):
            ranges[self.training] += [*signal.amin(-1).flatten().tolist(), *signal.amax(-1).flatten().tolist()]
            return super().forward(signal)

    encoder = nn.Sequential(Watching(), nn.Linear(FRAME, DIM))
    tune(attrs.evolve(bench, normalise=normalise), encoder, np.arange(16), epochs=1)
    for seen in ranges.values():
        assert (min(seen) >= 0 and max(seen) <= 1) == (normalise is min_max)


def test_predictions_are_the_probabilities_of_the_best_weights_in_eval_mode(bench):
    """By softmax, or a sigmoid per class; with running statistics and without dropout."""
    found = tune(bench, noisy_encoder(), epochs=6)
    classifier = found.classifier.eval()
    every = range(len(bench.parts["test"]))
    signal, label = signals_and_labels(bench, "test", every)
    with torch.no_grad():
        logits = classifier(signal).double().tolist()
    for row, said in zip(logits, found.predictions.probability, strict=True):
        whole = sum(math.exp(one) for one in row)
        kinds = {"one_of": [math.exp(one) / whole for one in row], "any_of": [1 / (1 + math.exp(-one)) for one in row]}
        np.testing.assert_allclose(said, kinds[bench.task.kind], rtol=1e-5)
    np.testing.assert_array_equal(found.predictions.label, label.numpy().astype(np.int64))
    again = predict(classifier, bench, "test", lambda step, steps: None)
    np.testing.assert_array_equal(again.probability, found.predictions.probability)


def test_something_is_learnt(bench):
    """The class is the level of the signal; which patients are tested does not matter to it."""
    found = tune(bench, simple_encoder(), epochs=40, learning_rate=1e-2)
    rows = predict(found.classifier, bench, "train", lambda step, steps: None)
    truth = rows.label if rows.label.ndim == 1 else rows.label.argmax(1)
    assert (rows.probability.argmax(1) == truth).mean() > 0.9


# ----------------------------------------------------------------------------------------------- what trains, and how


def test_all_weights_train_and_batchnorm_and_dropout_are_in_training_mode(bench):
    before = weights(noisy_encoder())
    found = weights(tune(bench, noisy_encoder(), epochs=1).classifier)
    for name, tensor in before.items():
        assert not torch.equal(found[f"encoder.{name}"], tensor), name
    certain = noisy_encoder()
    certain[-1].p = 0.0
    assert not same(weights(tune(bench, certain, epochs=1).classifier), found)


def test_the_head_follows_from_the_seed_and_from_nothing_else():
    """So that two inits differ in their encoders alone."""
    heads = [
        build_classifier(simple_encoder(number), DIM, Task("t", "abc"), seed).head.weight
        for number, seed in ((0, 0), (1, 0), (0, 1))
    ]
    assert torch.equal(heads[0], heads[1])
    assert not torch.equal(heads[0], heads[2])


def test_the_best_epoch_by_the_whole_validation_part_is_kept(bench):
    """A tiny part of the labels is learnt by heart; what came before that must win."""
    seen = []
    encoder = simple_encoder()
    found = tune(
        bench,
        encoder,
        np.arange(4),
        epochs=60,
        patience=3,
        learning_rate=0.1,
        epoch_done=lambda done: seen.append(done),
    )
    best = min(seen, key=lambda done: done.validation_loss)
    assert found.progress.best_epoch == best.epoch
    assert found.progress.epoch == best.epoch + 4 < 60  # more than 3 epochs in a row were no better
    signal, label = signals_and_labels(bench, "validation", range(len(bench.parts["validation"])))
    with torch.no_grad():
        kept = float(loss_in_loops(found.classifier.eval()(signal), label))
    assert kept == pytest.approx(best.validation_loss, rel=1e-5)
    assert found.steps == found.progress.epoch


def test_only_the_chosen_rows_are_learnt_from(bench):
    """Labels outside of F must not leak in."""
    rows = np.arange(0, len(bench.parts["train"]), 3)
    store = bench.store
    found = weights(tune(bench, simple_encoder(), rows).classifier)
    used = set(bench.parts["train"].frame[rows, 0].tolist()) | set(bench.parts["validation"].frame[:, 0].tolist())
    kept = store.label.clone()
    others = [frame for frame in range(len(store.label)) if frame not in used]
    store.label[others] = store.label[others].flip(0)
    try:
        assert same(weights(tune(bench, simple_encoder(), rows).classifier), found)
    finally:
        store.label.copy_(kept)


def test_another_seed_gives_other_weights_and_the_same_seed_the_same(bench):
    first, second, third = (weights(tune(bench, noisy_encoder(), seed=seed).classifier) for seed in (0, 0, 1))
    assert same(first, second)
    assert not same(first, third)


# --------------------------------------------------------------------------------------------------------- going on


def test_training_that_was_killed_goes_on_to_the_same_weights(bench, tmp_path):
    """A checkpoint is left every half minute; what came after it is done again."""
    whole = tune(bench, noisy_encoder(), epochs=7)
    path, minutes = tmp_path / "checkpoint", itertools.count(step=60).__next__

    def interrupt(done):
        if done.epoch == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(bench, noisy_encoder(), epochs=7, clock=minutes, checkpoint=path, epoch_done=interrupt)
    epochs = []
    again = tune(bench, noisy_encoder(9), epochs=7, checkpoint=path, epoch_done=lambda done: epochs.append(done.epoch))
    assert epochs == [4, 5, 6, 7]
    assert same(weights(again.classifier), weights(whole.classifier))
    np.testing.assert_array_equal(again.predictions.probability, whole.predictions.probability)
    assert (again.progress, again.steps) == (whole.progress, whole.steps)


def test_too_little_memory_names_a_batch_size_that_this_command_has(bench):
    def full(learner, training, epoch, tick):
        raise torch.OutOfMemoryError

    with pytest.raises(OutOfMemory, match=r"batches of 16 frames\. Try `batch_size=8`\.$"):
        tune(bench, simple_encoder(), run_epoch=full)


@pytest.mark.cuda
def test_the_captured_step_serves_fine_tuning_too(tmp_path):
    """A captured step that could not hold the classifier would fall back to the plain one, with a warning."""
    from clocs_core.train.captured import CapturedEpochs

    device, warned = torch.device("cuda"), []
    bench = list_labelled_frames(fake_cohort(tmp_path), False, min_max, device)
    ways = (plain_epoch, CapturedEpochs(warned.append))
    plain, captured = (tune(bench, simple_encoder().to(device), run_epoch=way) for way in ways)
    assert warned == []
    np.testing.assert_allclose(captured.predictions.probability, plain.predictions.probability, atol=1e-3)


# ------------------------------------------------------------------------------------------------------------ numbers


@pytest.fixture(scope="module")
def ages(tmp_path_factory):
    return list_labelled_frames(fake_cohort(tmp_path_factory.mktemp("frames"), {"r0-0"}, AGE), False, leave, CPU)


def test_a_number_is_learnt_around_the_mean_of_the_training_labels(ages):
    """A head that began at 0 would spend hundreds of epochs on the way to 60 years."""
    found = tune(ages, simple_encoder(), epochs=1)
    label = ages.rows["train"].label
    head = found.classifier.head
    assert head.mean.item() == pytest.approx(label.mean(), rel=1e-6)
    assert head.sd.item() == pytest.approx(label.std(), rel=1e-6)
    assert found.predictions.probability.shape == (len(found.predictions.label), 1)
    assert np.abs(found.predictions.probability - 67.5).max() < 20
    assert found.predictions.label.dtype == np.float32


def test_a_number_has_the_squared_error_of_its_rows(ages):
    """And frames without a label, those of r0-0, are not among them."""
    found = tune(ages, simple_encoder(), epochs=3, learning_rate=1e-3)
    label = ages.rows["validation"].label
    predicted = predict(found.classifier, ages, "validation", lambda done, total: None).probability[:, 0]
    assert found.progress.best_loss == pytest.approx(((predicted - label) ** 2).mean(), rel=1e-4)
    assert np.isfinite(ages.rows["train"].label).all()
