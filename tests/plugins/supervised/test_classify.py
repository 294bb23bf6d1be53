"""The objective of supervised pre-training, with and without labels."""

from __future__ import annotations

import copy
from functools import partial

import pytest
import torch
from label_oracle import CLASSES, LABELS, NO_LABEL, as_labels, loss_in_loops
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from clocs_core import Batch, Setup, Task, Views
from clocs_core.train.learner import start
from clocs_core.train.step import encode, train_step
from clocs_plugins.supervised import clocs_objectives

DIM, SAMPLES = 6, 40
TASKS = {kind: Task("rhythm", ("a", "b", "c"), kind=kind) for kind in ("one_of", "any_of")}


def build(task):
    (offer,) = clocs_objectives()
    return offer.build(offer.options(), Setup(encoder=nn.Identity(), embedding_dim=DIM, task=task))


def learner(task, seed=0, learning_rate=1e-2):
    torch.manual_seed(seed)
    encoder = nn.Sequential(nn.Conv1d(1, 3, 5, stride=2), nn.Tanh(), nn.Flatten(), nn.Linear(3 * 18, DIM), nn.ReLU())
    return start(nn.ModuleList([encoder]), build(task), learning_rate)


def views_of(labels, seed=0, views=1, batch=5):
    signal = torch.randn(views, batch, 1, SAMPLES, generator=torch.Generator().manual_seed(seed))
    ids = torch.arange(batch)
    return Views(signal, Batch(signal.transpose(0, 1), ids, ids, ids, ids, label=labels))


def loss_of(made, views):
    return made.objective(partial(encode, list(made.encoders), views.encoder_of_view), views)


# ----------------------------------------------------------------------------------------------------------- the module


@pytest.mark.parametrize("kind", ["one_of", "any_of"])
def test_a_batch_without_any_label_costs_nothing_and_teaches_nothing(kind):
    """Most recordings of a set may be unlabelled; 0/0 would end the run."""
    made, labels = learner(TASKS[kind]), as_labels(kind, [NO_LABEL[kind]] * 5)
    loss = loss_of(made, views_of(labels))
    loss.backward()
    assert loss.item() == 0
    gradients = [one.grad for one in [*made.encoders.parameters(), *made.objective.parameters()]]
    assert all(torch.equal(gradient, torch.zeros_like(gradient)) for gradient in gradients)


@pytest.mark.parametrize("kind", ["one_of", "any_of"])
def test_the_classifier_is_linear_in_the_embedding(kind):
    """So that what is learnt is in the encoder, as the paper's last layer has it."""
    made = learner(TASKS[kind])
    labels = as_labels(kind, LABELS[kind, "some labelled"])
    views, head = views_of(labels), made.objective.head
    with torch.no_grad():
        logits = made.encoders[0](views.signal[0]) @ head.weight.T + head.bias  # (batch, class)
    assert loss_of(made, views).item() == pytest.approx(loss_in_loops(kind, logits[None], labels), rel=1e-5)
    assert list(made.objective.state_dict()) == ["head.weight", "head.bias"]


@pytest.mark.parametrize("kind", ["one_of", "any_of"])
def test_a_separable_problem_is_learnt(kind):
    """Three levels can be told apart, though a third of the frames has no label."""
    made, generator = learner(TASKS[kind], learning_rate=3e-2), torch.Generator().manual_seed(0)
    losses = []
    for _ in range(80):
        level = torch.randint(CLASSES, (30,), generator=generator)
        signal = (level - 1.0)[:, None, None] + 0.2 * torch.randn(30, 1, SAMPLES, generator=generator)
        labels = level if kind == "one_of" else torch.stack([level == 0, level >= 1, level == 2], 1).float()
        labels = labels.clone()
        labels[::3] = as_labels(kind, NO_LABEL[kind])
        batch = Batch(signal[:, None], level, level, level, level, label=labels)
        views = Views(signal[None], batch)
        losses.append(train_step(list(made.encoders), made.objective, made.optimiser, views).item())
    assert losses[0] > 0.5
    assert sum(losses[-5:]) / 5 < 0.05


def test_a_second_objective_that_loads_the_state_gives_the_same_loss():
    """The classifier is in the checkpoint."""
    first, second = learner(TASKS["one_of"], seed=0), learner(TASKS["one_of"], seed=7)
    views = views_of(as_labels("one_of", LABELS["one_of", "all labelled"]))
    train_step(list(first.encoders), first.objective, first.optimiser, views)
    for part in ("encoders", "objective", "optimiser"):
        getattr(second, part).load_state_dict(copy.deepcopy(getattr(first, part).state_dict()))
    steps = [train_step(list(one.encoders), one.objective, one.optimiser, views) for one in (first, second)]
    assert torch.equal(*steps)
    assert torch.equal(loss_of(first, views), loss_of(second, views))


@pytest.mark.parametrize("kind", ["one_of", "any_of"])
def test_nothing_waits_for_the_device(kind):
    """A fake tensor has no values: reading one, or a shape made of values, raises. So would a CUDA graph."""
    with FakeTensorMode():
        made = learner(TASKS[kind])
        signal, ids = torch.randn(1, 4, 1, SAMPLES), torch.zeros(4, dtype=torch.int64)
        labels = ids if kind == "one_of" else torch.zeros(4, CLASSES)
        loss_of(made, Views(signal, Batch(signal, ids, ids, ids, ids, label=labels))).backward()
        assert made.objective.head.weight.grad.shape == (CLASSES, DIM)


# --------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (Task("none", ()), "the task 'none' has 0 classes, and 2 or more are needed"),
        (Task("all", ("a",)), "the task 'all' has 1 classes, and 2 or more are needed"),
        (Task("none", (), kind="any_of"), "the task 'none' has 0 classes, and 1 or more are needed"),
    ],
)
def test_a_task_without_a_question_is_refused(task, message):
    """One class of one cannot be wrong; the loss would be 0 from the start."""
    with pytest.raises(ValueError, match=message):
        build(task)
    build(Task("finding", ("a",), kind="any_of"))


def test_a_batch_without_labels_is_refused():
    """A data set may have none at all."""
    with pytest.raises(ValueError, match=r"got a batch without labels. Use a data set that has them"):
        loss_of(learner(TASKS["one_of"]), views_of(None))


@pytest.mark.parametrize("kind", ["one_of", "any_of"])
def test_labels_of_another_kind_are_refused(kind):
    """Broadcasting would make a number of them."""
    other = "any_of" if kind == "one_of" else "one_of"
    labels = as_labels(other, LABELS[other, "all labelled"])
    shapes = r"\(5, 3\), expected \(5,\)" if kind == "one_of" else r"\(5,\), expected \(5, 3\)"
    with pytest.raises(ValueError, match=f"got labels of shape {shapes}: they are of another task"):
        loss_of(learner(TASKS[kind]), views_of(labels))
