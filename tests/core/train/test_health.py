"""Health: do the numbers tell a spread from a collapse?"""

import math

import pytest
import torch

from clocs_core.train import health as health_of_training
from clocs_core.train.health import effective_rank


def measure(z, patient, train_loss, batch_size):
    """Measure on the device, judge on the host."""
    return health_of_training.judge(health_of_training.measure(z, patient).cpu(), z.shape[2], train_loss, batch_size)


def test_the_cosines_within_and_between_patients_are_those_of_plain_loops():
    generator = torch.Generator().manual_seed(1)
    z = torch.randn(2, 7, 5, generator=generator)
    patient = torch.tensor([0, 0, 1, 2, 2, 2, 3])
    same, other = [], []
    for i in range(7):
        for k in range(7):
            cosine = float(z[0, i] @ z[1, k] / (z[0, i].norm() * z[1, k].norm()))
            (same if patient[i] == patient[k] else other).append(cosine)
    health = measure(z, patient, train_loss=3.0, batch_size=8)
    assert health.same_patient == pytest.approx(sum(same) / len(same), abs=1e-6)
    assert health.other_patient == pytest.approx(sum(other) / len(other), abs=1e-6)
    assert health.margin == health.same_patient - health.other_patient
    assert health.loss_over_log_batch == pytest.approx(3.0 / math.log(8))


def test_with_one_view_an_embedding_is_not_compared_with_itself():
    z = torch.eye(4).repeat(1, 1, 1)
    health = measure(z, torch.tensor([0, 0, 1, 1]), 1.0, 4)
    assert health.same_patient == 0.0


def test_the_effective_rank_counts_directions():
    """Points spread alike along three axes have rank 3; points on a line have rank 1."""
    axes = torch.cat([torch.eye(3), -torch.eye(3)])
    assert effective_rank(axes) == pytest.approx(3.0, abs=1e-4)
    assert effective_rank(torch.linspace(0, 1, 9)[:, None] * torch.ones(3)) == pytest.approx(1.0, abs=1e-2)


def test_a_collapse_is_said_in_plain_words_and_a_spread_is_not():
    generator = torch.Generator().manual_seed(0)
    spread = measure(torch.randn(2, 200, 16, generator=generator), torch.arange(200), 1.0, 32)
    assert spread.warning() is None
    line = torch.randn(200, 1, generator=generator) * torch.ones(16)
    collapsed = measure(torch.stack([line, line]), torch.arange(200), 1.0, 32).warning()
    assert collapsed.startswith("the embeddings look collapsed: effective rank 1.0 of 16")
    one_point = 1 + 0.01 * torch.randn(2, 200, 16, generator=generator)
    assert "mean cosine of 1.000" in measure(one_point, torch.arange(200), 1.0, 32).warning()


def test_all_zero_embeddings_give_numbers():
    """Layer 4's ReLU makes this possible: a dead network must not become a NaN in the log."""
    health = measure(torch.zeros(2, 5, 8), torch.arange(5), 1.0, 4)
    assert health.effective_rank == 1.0
    assert health.other_patient == 0.0


@pytest.mark.parametrize("shape", [(200, 16), (9, 16)])
def test_the_effective_rank_is_that_of_the_singular_values(shape):
    z = torch.randn(shape, generator=torch.Generator().manual_seed(2)) * torch.logspace(0, -3, 16)
    values = torch.linalg.svdvals(z.double() - z.double().mean(0))
    share = (values / values.sum()).clamp_min(1e-300)
    assert effective_rank(z) == pytest.approx(float((-(share * share.log()).sum()).exp()), rel=1e-6)
