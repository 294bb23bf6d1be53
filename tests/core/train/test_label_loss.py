"""What labels cost, against cross-entropies written in loops, with and without labels."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from label_oracle import CLASSES, LABELS, NO_LABEL, as_labels, loss_in_loops

from clocs_core import Task, label_loss

seeds = st.integers(0, 2**31)
quick = settings(max_examples=20)
LOSSES = {kind: label_loss(Task("rhythm", ("a", "b", "c"), kind=kind)) for kind in ("one_of", "any_of")}


def random_logits(seed, views=1, batch=5, dtype=torch.float64):
    return 2 * torch.randn(views, batch, CLASSES, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@pytest.mark.parametrize("views", [1, 2])
@pytest.mark.parametrize(("kind", "case"), LABELS)
def test_the_loss_is_the_mean_cross_entropy_of_the_frames_that_have_a_label(kind, case, views):
    """The others must not weigh, neither above nor below the line."""
    labels = as_labels(kind, LABELS[kind, case])
    logits = random_logits(1, views, len(labels))
    found = LOSSES[kind](logits, labels)
    assert found.shape == ()
    assert found.dtype == torch.float64
    assert found.item() == pytest.approx(loss_in_loops(kind, logits, labels), rel=1e-12)


@pytest.mark.parametrize(("kind", "case"), LABELS)
def test_the_gradient_is_that_of_the_loss(kind, case):
    """And frames without a label get none."""
    labels = as_labels(kind, LABELS[kind, case])
    logits = random_logits(2, 2, len(labels)).requires_grad_()
    assert torch.autograd.gradcheck(lambda logits: LOSSES[kind](logits, labels), (logits,))
    LOSSES[kind](logits, labels).backward()
    without = [bool((row < 0).any() or row.isnan().any()) for row in labels]
    assert (logits.grad.abs().sum((0, 2)) == 0).tolist() == without


@given(seed=seeds, batch=st.integers(1, 6), kind=st.sampled_from(["one_of", "any_of"]))
@quick
def test_order_and_frames_without_a_label_do_not_matter(seed, batch, kind):
    """The loss is of the labelled frames, whatever stands between them."""
    generator = torch.Generator().manual_seed(seed)
    shape = (batch,) if kind == "one_of" else (batch, CLASSES)
    labels = torch.randint(CLASSES if kind == "one_of" else 2, shape, generator=generator)
    labels = labels if kind == "one_of" else labels.float()
    logits = random_logits(seed, 2, batch)
    loss = LOSSES[kind](logits, labels).item()
    order = torch.randperm(batch + 2, generator=generator)
    more = torch.cat([labels, as_labels(kind, [NO_LABEL[kind]] * 2)])[order]
    among = torch.cat([logits, 1e3 * random_logits(seed + 1, 2, 2)], 1)[:, order]
    assert LOSSES[kind](among, more).item() == pytest.approx(loss, rel=1e-9)


@pytest.mark.parametrize("kind", ["one_of", "any_of"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_short_floats_are_reduced_in_float32(kind, dtype):
    """Only the logits are rounded; sums over the batch are not."""
    labels = as_labels(kind, LABELS[kind, "all labelled"]).repeat(*((12,) if kind == "one_of" else (12, 1)))
    logits = random_logits(4, 1, len(labels)).to(dtype)
    found = LOSSES[kind](logits, labels)
    assert found.dtype == torch.float32
    assert found.item() == pytest.approx(LOSSES[kind](logits.double(), labels).item(), rel=2e-6)


@pytest.mark.parametrize("kind", ["one_of", "any_of"])
def test_a_batch_without_any_label_costs_nothing(kind):
    """Most recordings of a set may be unlabelled; 0/0 would end the run."""
    assert LOSSES[kind](random_logits(0), as_labels(kind, [NO_LABEL[kind]] * 5)).item() == 0


@pytest.mark.parametrize("kind", ["one_of", "any_of"])
def test_labels_of_another_kind_are_refused(kind):
    """Broadcasting would make a number of them."""
    other = "any_of" if kind == "one_of" else "one_of"
    labels = as_labels(other, LABELS[other, "all labelled"])
    shapes = r"\(5, 3\), expected \(5,\)" if kind == "one_of" else r"\(5,\), expected \(5, 3\)"
    with pytest.raises(ValueError, match=f"got labels of shape {shapes}: they are of another task"):
        LOSSES[kind](random_logits(0), labels)


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (Task("all", ("a",)), "the task 'all' has 1 classes, and 2 or more are needed"),
        (Task("none", (), kind="any_of"), "the task 'none' has 0 classes, and 1 or more are needed"),
    ],
)
def test_a_task_without_a_question_is_refused(task, message):
    """One class of one cannot be wrong; the loss would be 0 from the start."""
    with pytest.raises(ValueError, match=message):
        label_loss(task)


def test_the_loss_of_a_number_is_the_mean_squared_error_of_the_frames_that_have_one():
    values = random_logits(3, 2, 4)[..., :1]
    labels = torch.tensor([1.0, float("nan"), -2.0, 0.5])
    found = label_loss(Task("age", kind="number"))(values, labels)
    rows = [(view, row) for view in range(2) for row in (0, 2, 3)]
    expected = sum((values[view, row, 0].item() - labels[row].item()) ** 2 for view, row in rows) / len(rows)
    assert found.item() == pytest.approx(expected, rel=1e-12)
    assert label_loss(Task("age", kind="number"))(values, labels * float("nan")).item() == 0
