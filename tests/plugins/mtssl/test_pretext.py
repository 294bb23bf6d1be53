"""The pretext tasks of MT-SSL against the binary cross-entropy, written in loops."""

from __future__ import annotations

import copy
import math
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from clocs_core import Batch, Setup, Task, Views
from clocs_core.train.learner import start
from clocs_core.train.normalise import leave
from clocs_core.train.step import ViewMaker, encode, train_step
from clocs_plugins.mtssl import PretextOptions, clocs_methods, clocs_objectives
from clocs_plugins.mtssl.original import original_as_view
from clocs_plugins.mtssl.pretext import pretext_loss

seeds = st.integers(0, 2**31)
quick = settings(max_examples=20)
NAMES = ("louder", "upside-down", "back_to_front")
DIM, SAMPLES = 6, 40


def cross_entropy(logit, answer):
    probability = 1 / (1 + math.exp(-logit))
    return -math.log(probability if answer else 1 - probability)


def oracle(logits):
    tasks = []
    for originals, perturbed in logits.tolist():
        terms = [cross_entropy(logit, 0) for logit in originals] + [cross_entropy(logit, 1) for logit in perturbed]
        tasks.append(sum(terms) / len(terms))
    return sum(tasks) / len(tasks)


def random_logits(seed, tasks=3, batch=5, dtype=torch.float64):
    return 3 * torch.randn(tasks, 2, batch, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def small_encoder():
    return nn.Sequential(nn.Conv1d(1, 3, 5, stride=2), nn.Tanh(), nn.Flatten(), nn.Linear(3 * 18, DIM), nn.ReLU())


def views_of(seed=0, views=4, batch=8):
    signal = torch.randn(views, batch, 1, SAMPLES, generator=torch.Generator().manual_seed(seed))
    ids = torch.arange(batch)
    return Views(signal, Batch(signal.transpose(0, 1), ids, ids, ids, ids), perturb="one each")


def build(names=NAMES, encoder=None, **options):
    (offer,) = clocs_objectives()
    setup = Setup(
        encoder=encoder or nn.Identity(), embedding_dim=DIM, task=Task("rhythm", ("a", "b")), perturbations=names
    )
    return offer.build(offer.options(**options), setup)


def learner(seed=0, names=NAMES, learning_rate=1e-2, **options):
    torch.manual_seed(seed)
    encoders = nn.ModuleList([small_encoder()])
    return start(encoders, build(names, encoders[0], **options), learning_rate)


def loss_of(made, views):
    return made.objective(partial(encode, list(made.encoders), views.encoder_of_view), views)


# ------------------------------------------------------------------------------------------------------------- the loss


@pytest.mark.parametrize("tasks", [1, 3, 6])
@pytest.mark.parametrize("batch", [1, 2, 5])
def test_the_loss_is_the_mean_of_the_tasks_cross_entropies(tasks, batch):
    """Originals are answered by 0 and perturbed frames by 1, and every task counts as much as any other."""
    logits = random_logits(tasks, tasks, batch)
    found = pretext_loss(logits)
    assert found.shape == ()
    assert found.item() == pytest.approx(oracle(logits), rel=1e-12)


def test_the_gradient_is_that_of_the_loss():
    """In float64, against differences."""
    assert torch.autograd.gradcheck(pretext_loss, (random_logits(1).requires_grad_(),))


@given(seed=seeds, tasks=st.integers(1, 5), batch=st.integers(1, 6))
@quick
def test_order_does_not_matter_and_swapped_answers_do(seed, tasks, batch):
    """Of tasks and of the batch; a loss that did not know originals from perturbed frames would pass all else."""
    generator = torch.Generator().manual_seed(seed)
    logits = random_logits(seed, tasks, batch)
    loss = pretext_loss(logits).item()
    shuffled, others = torch.randperm(batch, generator=generator), torch.randperm(tasks, generator=generator)
    same = [pretext_loss(logits[..., shuffled]).item(), pretext_loss(logits[others]).item()]
    assert same == pytest.approx([loss, loss], rel=1e-12)
    assert pretext_loss(-logits.flip(1)).item() == pytest.approx(loss, rel=1e-12)
    difference = (logits[:, 0] - logits[:, 1]).mean().item() / 2  # log(1 + e^s) - log(1 + e^-s) is s
    assert pretext_loss(logits.flip(1)).item() == pytest.approx(loss - difference, rel=1e-9, abs=1e-9)


def test_a_guess_costs_log_2_and_certainty_does_not_overflow():
    """Where the curve starts; and exp(1000) is no number."""
    assert pretext_loss(torch.zeros(2, 2, 3)).item() == pytest.approx(math.log(2))
    sure = torch.tensor([[[-1000.0], [1000.0]]], requires_grad=True)
    assert pretext_loss(sure).item() == 0
    wrong = (-sure.detach()).requires_grad_()
    pretext_loss(wrong).backward()
    assert pretext_loss(wrong).item() == 1000
    assert torch.equal(wrong.grad.flatten(), torch.tensor([0.5, -0.5]))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_short_floats_are_reduced_in_float32(dtype):
    """Only the logits are rounded; sums over the batch are not."""
    logits = random_logits(4, 3, 64).to(dtype)
    found = pretext_loss(logits)
    assert found.dtype == torch.float32
    assert found.item() == pytest.approx(pretext_loss(logits.double()).item(), rel=2e-6)


# ----------------------------------------------------------------------------------------------------------- the module


@pytest.mark.parametrize("hidden", [0, 7])
def test_each_head_sees_the_original_and_its_own_view(hidden):
    """Head j against view j + 1, in the order of the run's perturbations."""
    made, views = learner(hidden=hidden), views_of()
    with torch.no_grad():
        z = [made.encoders[0](view) for view in views.signal]
        logits = [
            torch.stack([made.objective.heads[f"is-{name}"](one).flatten() for one in (z[0], z[number])])
            for number, name in enumerate(NAMES, start=1)
        ]
    assert loss_of(made, views).item() == pytest.approx(oracle(torch.stack(logits)), rel=1e-5)


@pytest.mark.parametrize("hidden", [0, 7])
def test_heads_at_once_are_the_heads_one_by_one(hidden):
    """As on a GPU: logits, and gradients of every head and of the embeddings."""
    made = build(hidden=hidden).double()
    z = torch.randn(1 + len(NAMES), 8, DIM, dtype=torch.float64, requires_grad=True)
    found = []
    for way in (made.one_by_one, made.at_once):
        logits = way(z)
        z.grad = None
        made.zero_grad()
        (logits * torch.arange(logits.numel()).view_as(logits)).sum().backward()
        found.append((logits.detach(), z.grad, [one.grad for one in made.parameters()]))
    assert found[0][0].shape == (len(NAMES), 2, 8)
    torch.testing.assert_close(found[1], found[0], rtol=1e-12, atol=1e-12)


def test_a_view_gives_a_gradient_to_its_own_head_alone():
    """A head that learnt from the wrong view would recognise the wrong perturbation."""
    made, views = learner(), views_of()
    z = torch.randn(4, 8, DIM, requires_grad=True)
    made.objective(lambda signal: z, views).backward()
    before = {name: one.grad.clone() for name, one in made.objective.named_parameters()}
    other = z.detach().clone()
    other[2] += 1
    made.objective.zero_grad()
    made.objective(lambda signal: other, views).backward()
    changed = {name for name, one in made.objective.named_parameters() if not torch.equal(one.grad, before[name])}
    assert changed == {name for name in before if name.startswith("heads.is-upside-down.")}
    assert (z.grad.abs().sum((1, 2)) > 0).all()


def test_a_hidden_layer_of_zero_units_is_no_layer():
    """A linear head asks more of the encoder."""
    assert [type(one) for one in build(hidden=5).heads["is-louder"]] == [nn.Linear, nn.ReLU, nn.Linear]
    assert build(hidden=5).heads["is-louder"][0].out_features == 5
    linear = build(hidden=0).heads["is-louder"]
    assert (type(linear), linear.in_features, linear.out_features) == (nn.Linear, DIM, 1)


def test_two_tasks_are_learnt_in_a_few_steps():
    """Louder and upside down can be told from the original by hardly more than a mean."""
    generator = torch.Generator().manual_seed(0)
    make = ViewMaker(original_as_view, (lambda signal, _: 3 * signal, lambda signal, _: -signal), normalise=leave)
    made = learner(names=("louder", "upside-down"), learning_rate=3e-2)
    ids = torch.arange(32)
    losses = []
    for _ in range(60):
        wave = 1 + 0.3 * torch.randn(32, 1, 1, SAMPLES, generator=generator)
        views = make(Batch(wave, ids, ids, ids, ids), generator)
        losses.append(train_step(list(made.encoders), made.objective, made.optimiser, views).item())
    assert losses[0] == pytest.approx(math.log(2), abs=0.1)
    assert sum(losses[-5:]) / 5 < 0.05


def test_a_second_objective_goes_on_where_the_first_one_was_saved():
    """The heads are in the checkpoint, by the name of their perturbation."""
    straight, first, second = learner(seed=0), learner(seed=0), learner(seed=7)

    def train(made, numbers):
        for number in numbers:
            train_step(list(made.encoders), made.objective, made.optimiser, views_of(number))

    train(straight, range(4))
    train(first, range(2))
    for part in ("encoders", "objective", "optimiser"):
        getattr(second, part).load_state_dict(copy.deepcopy(getattr(first, part).state_dict()))
    train(second, range(2, 4))
    expected = straight.objective.state_dict()
    assert all(torch.equal(tensor, expected[name]) for name, tensor in second.objective.state_dict().items())
    assert list(expected)[:2] == ["heads.is-louder.0.weight", "heads.is-louder.0.bias"]


@pytest.mark.parametrize("name", ["values", "items", "train", "half", "0", "a-b_c"])
def test_any_name_that_a_perturbation_can_have_makes_a_head(name):
    """torch keeps modules as attributes, and some names are taken."""
    assert loss_of(learner(names=(name,)), views_of(views=2)).isfinite()


def test_nothing_waits_for_the_device():
    """A fake tensor has no values: reading one, or a shape made of values, raises. So would a CUDA graph."""
    with FakeTensorMode():
        made = learner()
        signal = torch.randn(4, 8, 1, SAMPLES)
        ids = torch.zeros(8, dtype=torch.int64)
        views = Views(signal, Batch(signal.transpose(0, 1), ids, ids, ids, ids), perturb="one each")
        loss_of(made, views).backward()
        assert made.objective.heads["is-louder"][0].weight.grad.shape == (128, DIM)


# ----------------------------------------------------------------------------------------------------- options, errors


def test_a_run_without_perturbations_is_refused():
    """There is nothing to recognise."""
    with pytest.raises(ValueError, match=r"no perturbation to recognise; name some with `perturbations="):
        build(names=())


def test_a_perturbation_that_stands_twice_is_refused():
    """Two tasks would share a head."""
    with pytest.raises(ValueError, match="louder is named twice among the perturbations"):
        build(names=("louder", "quieter", "louder"))


@pytest.mark.parametrize("views", [1, 3, 5])
def test_views_that_are_not_one_for_each_head_are_refused(views):
    """Some head would be left over, or some view."""
    with pytest.raises(ValueError, match=rf"got {views} views, .* expected 4, 'one each': .* the views `original`"):
        loss_of(learner(), views_of(views=views))


def test_views_that_were_perturbed_otherwise_are_refused():
    """Four segments of a recording are as many as an original and three perturbations, and teach something else."""
    views = views_of()
    with pytest.raises(ValueError, match="got 4 views, of which 'every' are perturbed"):
        loss_of(learner(), Views(views.signal, views.batch))


def test_a_negative_number_of_units_is_refused():
    """By the option's name."""
    with pytest.raises(ValueError, match="hidden must be zero or more, got -1"):
        PretextOptions(hidden=-1)


def test_mt_ssl_is_put_together_as_in_the_paper():
    """Six tasks, and on Chapman the three with which it converged; noise at a signal-to-noise ratio of 15 dB."""
    (method,) = clocs_methods()
    assert (method.name, method.views, method.encoder, method.objective) == ("mt-ssl", "original", "cnn", "pretext")
    assert method.perturbations == ("gaussian", "scaling", "flip_x", "flip_y", "permutation", "time_warp")
    assert method.on_dataset == {"chapman": {"run": {"perturbations": ["scaling", "flip_x", "flip_y"]}}}
    (noise,) = method.presets["gaussian"].values()
    assert 20 * math.log10(1 / noise) == pytest.approx(15, abs=0.02)
