"""BYOL against its formulas, written in loops: the loss, and the moving average that is the target."""

from __future__ import annotations

import io
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
from clocs_core.train.step import encode, train_step, validation_step
from clocs_plugins.byol import BYOLOptions, clocs_methods, clocs_objectives
from clocs_plugins.byol.bootstrap import DISTANCES, bootstrap_loss

seeds = st.integers(0, 2**31)
quick = settings(max_examples=20)
DIM, SAMPLES = 6, 40


def squared_error(prediction, target):
    return sum((p - t) ** 2 for p, t in zip(prediction, target, strict=True)) / len(prediction)


def two_minus_two_cos(prediction, target):
    dot = sum(p * t for p, t in zip(prediction, target, strict=True))
    lengths = math.sqrt(sum(p * p for p in prediction)) * math.sqrt(sum(t * t for t in target))
    return 2 - 2 * (dot / lengths if lengths > 0 else 0.0)


ORACLES = {"mse": squared_error, "cosine": two_minus_two_cos}


def oracle(prediction, target, loss, pairs=None):
    prediction, target = prediction.tolist(), target.tolist()
    views = range(len(prediction))
    terms = []
    for a in views:
        for b in views:
            if a != b and (pairs is None or (a, b) in pairs or (b, a) in pairs):
                for p, t in zip(prediction[a], target[b], strict=True):
                    terms.append(ORACLES[loss](p, t))
    return sum(terms) / len(terms)


def embeddings(seed, views=2, batch=5, dim=4, dtype=torch.float64):
    return torch.randn(views, batch, dim, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def small_encoder(dropout=0.0):
    convolution = nn.Conv1d(1, 3, 5, stride=2)
    return nn.Sequential(
        convolution, nn.BatchNorm1d(3), nn.Tanh(), nn.Dropout(dropout), nn.Flatten(), nn.Linear(3 * 18, DIM)
    )


def views_of(seed=0, views=2, batch=8, **fields):
    signal = torch.randn(views, batch, 1, SAMPLES, generator=torch.Generator().manual_seed(seed))
    ids = torch.arange(batch)
    return Views(signal, Batch(signal.transpose(0, 1), ids, ids, ids, ids), **fields)


def learner(seed=0, learning_rate=1e-2, dropout=0.0, **options):
    (offer,) = clocs_objectives()
    torch.manual_seed(seed)
    encoders = nn.ModuleList([small_encoder(dropout)])
    setup = Setup(encoder=encoders[0], embedding_dim=DIM, task=Task("rhythm", ("a", "b")))
    return start(encoders, offer.build(offer.options(**options), setup), learning_rate)


def step(made, views):
    return train_step(list(made.encoders), made.objective, made.optimiser, views)


def loss_of(made, views):
    return made.objective(partial(encode, list(made.encoders), views.encoder_of_view), views)


# ------------------------------------------------------------------------------------------------------------- the loss


@pytest.mark.parametrize("loss", ["mse", "cosine"])
@pytest.mark.parametrize("views", [2, 3, 4])
@pytest.mark.parametrize("batch", [1, 2, 5])
def test_the_loss_is_the_mean_distance_to_the_target_of_every_other_view(loss, views, batch):
    """Both ways: with one only, half of the views would train nothing."""
    prediction, target = embeddings(1, views, batch), embeddings(2, views, batch)
    found = bootstrap_loss(prediction, target, DISTANCES[loss])
    assert found.shape == ()
    assert found.dtype == torch.float64
    assert found.item() == pytest.approx(oracle(prediction, target, loss), rel=1e-12)


@pytest.mark.parametrize("loss", ["mse", "cosine"])
def test_only_the_pairs_that_the_views_name_are_compared(loss):
    """A view generator may say which views belong together."""
    prediction, target, pairs = embeddings(1, 4), embeddings(2, 4), ((0, 2), (3, 1))
    found = bootstrap_loss(prediction, target, DISTANCES[loss], pairs)
    assert found.item() == pytest.approx(oracle(prediction, target, loss, pairs), rel=1e-12)
    made = learner(loss=loss)
    everything, some = loss_of(made, views_of(views=4)), loss_of(made, views_of(views=4, pairs=pairs))
    assert everything.item() != pytest.approx(some.item(), rel=1e-4)


@pytest.mark.parametrize("loss", ["mse", "cosine"])
def test_the_gradient_is_that_of_the_loss(loss):
    """Where lengths are divided out, the division is part of it."""
    pair = (embeddings(3, 3, 2, 3).requires_grad_(), embeddings(4, 3, 2, 3).requires_grad_())
    assert torch.autograd.gradcheck(lambda p, t: bootstrap_loss(p, t, DISTANCES[loss]), pair)


@given(seed=seeds, views=st.integers(2, 4), batch=st.integers(1, 6))
@quick
def test_what_does_not_matter_does_not_change_the_loss(seed, views, batch):
    """Order of the batch and of the views; and for the cosine, the lengths on both sides."""
    generator = torch.Generator().manual_seed(seed)
    prediction, target = embeddings(seed, views, batch), embeddings(seed + 1, views, batch)
    shuffled, viewed = torch.randperm(batch, generator=generator), torch.randperm(views, generator=generator)
    lengths = 10 ** (4 * torch.rand(2, views, batch, 1, generator=generator, dtype=torch.float64) - 2)
    for name, distance in DISTANCES.items():
        loss = bootstrap_loss(prediction, target, distance).item()
        others = [
            bootstrap_loss(prediction[:, shuffled], target[:, shuffled], distance).item(),
            bootstrap_loss(prediction[viewed], target[viewed], distance).item(),
        ]
        if name == "cosine":
            others.append(bootstrap_loss(lengths[0] * prediction, lengths[1] * target, distance).item())
        assert others == pytest.approx([loss] * len(others), rel=1e-9)


def test_right_and_wrong_predictions_are_at_the_ends_of_the_cosine_loss():
    """The scale on which a curve is read: 0 for the right direction, 2 for none, 4 for the opposite one."""
    one = embeddings(5, 1).expand(2, -1, -1)
    losses = [bootstrap_loss(size * one, one, DISTANCES["cosine"]).item() for size in (3.0, 0.0, -0.5)]
    assert losses == pytest.approx([0, 2, 4], abs=1e-12)


@pytest.mark.parametrize("loss", ["mse", "cosine"])
def test_embeddings_of_zeros_give_a_finite_gradient(loss):
    """Layer 4 ends in a ReLU, which can silence an embedding; 0/0 would poison every weight."""
    prediction, target = embeddings(6, dtype=torch.float32), embeddings(7, dtype=torch.float32)
    prediction[0, 1] = 0
    target[1, 2] = 0
    prediction.requires_grad_()
    found = bootstrap_loss(prediction, target, DISTANCES[loss])
    found.backward()
    assert found.item() == pytest.approx(oracle(prediction.detach().double(), target.double(), loss), rel=1e-5)
    assert prediction.grad.isfinite().all()
    assert prediction.grad.abs().max() < 10


@pytest.mark.parametrize("loss", ["mse", "cosine"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_short_floats_are_reduced_in_float32(loss, dtype):
    """Only the embeddings are rounded; sums over the batch are not."""
    prediction, target = embeddings(8, 2, 64, 16).to(dtype), embeddings(9, 2, 64, 16).to(dtype)
    found = bootstrap_loss(prediction, target, DISTANCES[loss])
    assert found.dtype == torch.float32
    exact = bootstrap_loss(prediction.double(), target.double(), DISTANCES[loss])
    assert found.item() == pytest.approx(exact.item(), rel=2e-6)


# ----------------------------------------------------------------------------------------------------------- the module


@pytest.mark.parametrize("loss", ["mse", "cosine"])
@pytest.mark.parametrize("relu", [True, False])
def test_the_objective_compares_predictions_with_the_target_network(loss, relu):
    """The parts are at their places: encoder and predictor on one side, the target alone on the other."""
    made, views = learner(loss=loss, predictor_relu=relu), views_of(views=3)
    for _ in range(2):
        step(made, views)  # so that encoder and target differ
    made.encoders.eval()
    made.objective.eval()
    linear = made.objective.predictor[0]
    with torch.no_grad():
        prediction = torch.stack([made.encoders[0](view) @ linear.weight.T + linear.bias for view in views.signal])
        target = torch.stack([made.objective.target(view) for view in views.signal])
    prediction = prediction.clamp(min=0) if relu else prediction
    assert loss_of(made, views).item() == pytest.approx(oracle(prediction, target, loss), rel=1e-5)


def test_the_predictor_is_layer_4_again():
    """E to E, with a ReLU, and nothing else is added to the network."""
    (linear, relu) = learner().objective.predictor
    assert (linear.in_features, linear.out_features) == (DIM, DIM)
    assert isinstance(relu, nn.ReLU)
    assert isinstance(learner(predictor_relu=False).objective.predictor[1], nn.Identity)


def test_the_target_reads_all_views_in_one_call():
    """BatchNorm of the two networks sees the same batch, and the GPU gets one call and not one for each view."""
    made, calls = learner(), []
    made.objective.target.register_forward_pre_hook(lambda module, given: calls.append(tuple(given[0].shape)))
    step(made, views_of(views=3, batch=4))
    assert calls == [(12, 1, SAMPLES)]


def test_no_gradient_flows_into_the_target():
    """With one, both networks would meet at a constant."""
    made = learner()
    loss_of(made, views_of()).backward()
    assert all(one.grad is None and not one.requires_grad for one in made.objective.target.parameters())
    trained = [*made.encoders.parameters(), *made.objective.predictor.parameters()]
    assert all(one.grad is not None and one.grad.abs().sum() > 0 for one in trained if one.dim() > 1)
    views, z = views_of(), torch.randn(2, 8, DIM)
    views.signal.requires_grad_()
    made.objective(lambda signal: z, views).backward()  # what does not come through the encoder ends at the target
    assert views.signal.grad is None


def test_the_optimiser_is_given_the_predictor_but_not_the_target():
    """Adam's weight decay or momentum would otherwise move what only the average may move."""
    made = learner()
    optimised = set(map(id, made.optimiser.weights))
    wanted = {id(one) for one in [*made.encoders.parameters(), *made.objective.predictor.parameters()]}
    assert optimised == wanted


def test_the_target_starts_as_a_copy_of_the_encoder_and_shares_nothing_with_it():
    """Another start would be another network to predict; the same tensors would follow at once."""
    made = learner()
    theirs, mine = made.encoders[0].state_dict(), made.objective.target.state_dict()
    assert list(mine) == list(theirs)
    for name, tensor in mine.items():
        assert torch.equal(tensor, theirs[name])
        assert tensor.data_ptr() != theirs[name].data_ptr()


# ------------------------------------------------------------------------------------------------------- moving average


@pytest.mark.parametrize("decay", [0.0, 0.5, 0.9, 1.0])
def test_the_target_is_a_geometric_average_of_the_encoders_past(decay):
    """After n steps: decay^n of the first weights, and (1 - decay)·decay^(n - k) of those after step k."""
    made, steps = learner(decay=decay), 5
    past = [[one.detach().double().flatten().tolist() for one in made.encoders[0].parameters()]]
    for number in range(steps):
        step(made, views_of(number))
        past.append([one.detach().double().flatten().tolist() for one in made.encoders[0].parameters()])
    weight = [decay**steps] + [(1 - decay) * decay ** (steps - k) for k in range(1, steps + 1)]
    assert sum(weight) == pytest.approx(1)
    for place, parameter in enumerate(made.objective.target.parameters()):
        for item, found in enumerate(parameter.flatten().tolist()):
            expected = sum(w * weights[place][item] for w, weights in zip(weight, past, strict=True))
            assert found == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_without_decay_the_target_is_the_encoder_statistics_included():
    """Grill et al. call it an instantaneous update. Both have then seen the same batches with the same weights."""
    made = learner(decay=0.0)
    for number in range(4):
        step(made, views_of(number))
        theirs = made.encoders[0].state_dict()
        for name, tensor in made.objective.target.state_dict().items():
            assert torch.equal(tensor, theirs[name]), name


def test_the_target_counts_statistics_of_its_own_activations():
    """In validation it normalises by them; those of an encoder that has moved on would be of other activations."""
    made, views = learner(decay=1.0, learning_rate=0.1), views_of()
    for _ in range(80):  # of which 0.9^80 of the first statistics are left
        step(made, views)
    target, signal = made.objective.target, views.signal.flatten(0, 1)
    activation = target[0](signal)
    torch.testing.assert_close(target[1].running_mean, activation.mean((0, 2)), rtol=1e-3, atol=1e-3)
    assert (made.encoders[0][1].running_mean - target[1].running_mean).abs().max() > 0.1
    in_training, in_validation = target.train()(signal), target.eval()(signal)
    torch.testing.assert_close(in_validation, in_training, rtol=0.02, atol=0.02)


def test_validation_changes_nothing():
    """An epoch's loss must not depend on how often it is measured."""
    made, views = learner(), views_of()
    step(made, views)
    made.encoders.eval()
    made.objective.eval()
    before = {name: tensor.clone() for name, tensor in made.objective.state_dict().items()}
    losses = [validation_step(list(made.encoders), made.objective, views)[0] for _ in range(2)]
    assert torch.equal(*losses)
    assert all(torch.equal(tensor, before[name]) for name, tensor in made.objective.state_dict().items())


def test_a_run_that_is_interrupted_goes_on_exactly():
    """Three steps, a checkpoint, three more in another process: the same as six."""
    straight, first, second = learner(seed=0), learner(seed=0), learner(seed=7)
    for number in range(6):
        step(straight, views_of(number))
    for number in range(3):
        step(first, views_of(number))
    file = io.BytesIO()
    parts = ("encoders", "objective", "optimiser")
    torch.save({part: getattr(first, part).state_dict() for part in parts}, file)
    file.seek(0)
    for part, state in torch.load(file, weights_only=True).items():
        getattr(second, part).load_state_dict(state)
    for number in range(3, 6):
        step(second, views_of(number))
    for part in ("encoders", "objective"):
        expected, found = getattr(straight, part).state_dict(), getattr(second, part).state_dict()
        assert all(torch.equal(tensor, expected[name]) for name, tensor in found.items())


def test_the_checkpoint_holds_the_target():
    """With its statistics; a target that starts again from the encoder would be another one."""
    names = list(learner().objective.state_dict())
    assert [name for name in names if name.startswith("predictor.")] == ["predictor.0.weight", "predictor.0.bias"]
    assert {"target.0.weight", "target.1.running_mean", "target.5.bias"} < set(names)


def test_nothing_waits_for_the_device():
    """A fake tensor has no values: reading one, or a shape made of values, raises. So would a CUDA graph."""
    made = learner(loss="cosine")  # of real tensors: a fake one cannot be copied deeply
    with FakeTensorMode(allow_non_fake_inputs=True):
        signal = torch.randn(2, 4, 1, SAMPLES)
        ids = torch.zeros(4, dtype=torch.int64)
        views = Views(signal, Batch(signal.transpose(0, 1), ids, ids, ids, ids))
        assert loss_of(made, views).shape == ()
        made.objective.after_step(made.encoders[0])


# ------------------------------------------------------------------------------------------------------ options, errors


def test_one_view_is_refused():
    """There is no other view to predict."""
    with pytest.raises(ValueError, match=r"`byol` got 1 view, expected two or more"):
        loss_of(learner(), views_of(views=1))


def test_views_of_several_encoders_are_refused():
    """One target cannot follow two networks; it would predict the second by the first."""
    made = learner()
    with pytest.raises(ValueError, match=r"views of several encoders, \(0, 1\), but its target follows the first"):
        made.objective(lambda signal: signal, views_of(encoder_of_view=(0, 1)))
    loss_of(made, views_of(encoder_of_view=(0, 0)))  # one encoder, said twice


@pytest.mark.parametrize("decay", [-0.1, 1.1, float("nan")])
def test_a_decay_that_is_no_average_is_refused(decay):
    """Beyond 0 and 1 the target runs away from the encoder."""
    with pytest.raises(ValueError, match=r"decay must be in \[0, 1\], got"):
        BYOLOptions(decay=decay)


def test_the_defaults_are_the_papers():
    """tau_d = 0.9, the mean squared error, and layer 4 with its ReLU."""
    assert BYOLOptions() == BYOLOptions(decay=0.9, loss="mse", predictor_relu=True)
    (method,) = clocs_methods()
    assert (method.name, method.views, method.encoder, method.objective) == ("byol", "perturbed", "cnn", "byol")
    assert method.perturbations == ("gaussian",)
