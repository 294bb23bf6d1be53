"""Which way is taken, and that whatever rows were not written for is left to torch's modules."""

from __future__ import annotations

import copy
import time
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from clocs_core import SettingsError, Unavailable
from clocs_core.testing.encoders import checks_of_encoder
from clocs_plugins.cnn import CNNOptions, clocs_encoders
from clocs_plugins.cnn.implementations import ENOUGH, choose
from clocs_plugins.cnn.network import CNN

MANY = ENOUGH // 500  # signals of 500 samples from which rows are worth it


def network(implementation="auto", **options):
    torch.manual_seed(0)
    return CNN(1, 500, 8, implementation=implementation, **options)


def way(made, signal=None):
    return choose(made.blocks, torch.randn(MANY, 1, 500) if signal is None else signal, made.implementation)


def test_the_way_is_chosen_by_what_was_asked_for_and_by_size():
    """`auto` takes rows from where they are faster; a name is taken at its word, where it can be."""
    few, many = torch.randn(MANY - 1, 1, 500), torch.randn(MANY, 1, 500)
    ways = {asked: [way(network(asked), signal) for signal in (few, many)] for asked in ("auto", "plain", "rows")}
    assert ways == {"auto": ["plain", "rows"], "plain": ["plain", "plain"], "rows": ["rows", "rows"]}


def test_evaluation_is_in_rows_where_no_gradient_is_wanted():
    """It keeps nothing for one: with gradients on, evaluation is plain, and a saliency map is right."""
    made = network().eval()
    assert way(made) == "plain"
    for context in (torch.no_grad, torch.inference_mode):
        with context():
            assert way(made) == "rows"


def test_half_precision_and_autocast_are_plain():
    """Modules know what autocast does; rows would compute in what they are given."""
    made = network("rows")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert way(made) == "plain"
        assert made(torch.randn(4, 1, 500)).dtype == torch.bfloat16
    assert way(made, torch.randn(4, 1, 500, dtype=torch.bfloat16)) == "plain"
    assert way(made, torch.randn(4, 1, 500, dtype=torch.float64)) == "plain"  # torch says what is wrong
    assert way(made.double(), torch.randn(4, 1, 500, dtype=torch.float64)) == "rows"


@pytest.mark.parametrize("implementation", ["auto", "rows"])
@pytest.mark.parametrize("training", [True, False])
def test_tensors_without_values_are_plain(implementation, training):
    """Shapes are found out by them, and that no value is needed on the host."""
    made = network(implementation).train(training)
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with mode, torch.no_grad():
        assert made(mode.from_tensor(torch.randn(MANY, 1, 500))).shape == (MANY, 8)
    with torch.no_grad():
        assert made.to("meta")(torch.empty(MANY, 1, 500, device="meta")).shape == (MANY, 8)


def test_a_compiler_sees_modules(monkeypatch):
    """It cannot look into a backward pass that is written out by hand."""
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert way(network()) == "plain"


def listen(made):
    made.blocks[1].pool.register_forward_hook(lambda *_: None)


def listen_to_all_blocks(made):
    made.blocks.register_forward_hook(lambda *_: None)


def listen_to_a_gradient(made):
    made.blocks[0].register_full_backward_hook(lambda *_: None)


def stop_one_norm(made):
    made.blocks[0].norm.eval()


def stop_one_dropout(made):
    made.blocks[2].dropout.eval()


def another_norm(made):
    made.blocks[0].norm = nn.InstanceNorm1d(4)


def no_running_statistics(made):
    made.blocks[0].norm = nn.BatchNorm1d(4, track_running_stats=False)


def weight_norm(made):
    nn.utils.parametrizations.weight_norm(made.blocks[0].conv)


def drop_all(made):
    made.blocks[0].dropout.p = 1.0


def another_block(made):
    made.blocks[2] = nn.Sequential(*made.blocks[2])


def zero_gamma(made):
    nn.init.zeros_(made.blocks[0].norm.weight)


CHANGES = [
    listen,
    listen_to_all_blocks,
    listen_to_a_gradient,
    stop_one_norm,
    stop_one_dropout,
    another_norm,
    no_running_statistics,
    weight_norm,
    drop_all,
    another_block,
    zero_gamma,
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_network_that_was_changed_is_plain_and_computes_what_it_now_is(change):
    """Frozen statistics, hooks that collect activations, exchanged parts: all are heard, none is passed over."""
    made = network("rows")
    assert way(made) == "rows"
    change(made)
    assert way(made) == "plain"
    signal = torch.randn(4, 1, 500)
    expected = copy.deepcopy(made) if change is not weight_norm else made
    torch.manual_seed(1)
    found = made(signal)
    torch.manual_seed(1)
    torch.testing.assert_close(found, expected.activation(expected.linear(expected.blocks(signal).flatten(1))))


@pytest.mark.parametrize("shape", [(3, 500), (4, 2, 500), (4, 1, 500, 1)])
def test_signals_of_a_wrong_shape_are_refused_by_torch_in_its_own_words(shape):
    """An error of a matrix product would tell nobody what is wrong."""
    messages = []
    for implementation in ("plain", "rows"):
        with pytest.raises(RuntimeError) as problem:
            network(implementation)(torch.randn(shape))
        messages.append(str(problem.value))
    assert messages[0] == messages[1]


def test_a_way_that_a_device_does_not_have_is_refused_if_it_is_asked_for():
    """Asked for by name, another way would be compared with itself; `clocs verify` passes over one that is refused."""
    blocks = network().blocks
    on_gpu = SimpleNamespace(device=torch.device("cuda:0"))
    assert choose(blocks, on_gpu, "plain") == "plain"
    with pytest.raises(Unavailable, match=r"implementation=rows.*on a CPU.*on cuda:0\. Use implementation=auto"):
        choose(blocks, on_gpu, "rows")
    with pytest.raises(Unavailable, match=r"implementation=fused, which needs an NVIDIA GPU, and the data is on cpu"):
        choose(blocks, torch.randn(4, 1, 500), "fused")


REFUSALS = {
    "takes signals of float32 or float64, not torch.float16": lambda made: made.half(),
    "ignores the hooks that are registered": listen_to_all_blocks,
    "takes blocks as they were built": drop_all,
    "takes blocks that have one stride, dropout, momentum": lambda made: setattr(made.blocks[1].dropout, "p", 0.5),
    "takes float32 on a GPU, widths up to 64": lambda made: made,  # on a CPU, that is
}


@pytest.mark.parametrize("reason", REFUSALS)
def test_kernels_that_were_asked_for_by_name_train_or_say_why_not(reason, monkeypatch):
    """As impl=fused of a loss does: whoever measures them must not measure torch's modules. Evaluation is plain."""
    monkeypatch.setenv("TRITON_INTERPRET", "1")  # else a machine without a GPU is refused before anything is looked at
    made = network("fused")
    REFUSALS[reason](made)
    signal = torch.randn(4, 1, 500, dtype=made.linear.weight.dtype)
    with pytest.raises(SettingsError, match=f"asked for implementation=fused, which {reason}.*Use auto"):
        made(signal)
    with torch.no_grad():
        assert way(made.eval(), signal) == "plain"


@pytest.mark.cuda
def test_on_a_gpu_a_last_layer_that_somebody_listens_to_is_refused_by_name():
    made, signal = network("fused").cuda(), torch.randn(8, 1, 500, device="cuda")
    made(signal)
    made.linear.register_forward_hook(lambda *_: None)
    with pytest.raises(SettingsError, match=r"ignores the hooks that are registered on the last layer\. Use auto"):
        made(signal)


@pytest.mark.cuda
def test_on_a_gpu_training_is_fused_and_evaluation_too_where_no_gradient_is_wanted():
    """And both are plain where blocks differ from each other, or are not what they were built of."""
    made, signal = network().cuda(), torch.randn(8, 1, 500, device="cuda")
    assert way(made, signal) == "fused"
    assert way(made.double(), signal.double()) == "plain"
    made = network().cuda()
    made.blocks[1].dropout.p = 0.5
    assert way(made, signal) == "plain"
    made = network().cuda()
    listen(made)
    assert way(made, signal) == "plain"
    assert way(network().cuda().eval(), signal) == "plain"
    with torch.no_grad():
        assert way(network().cuda().eval(), signal) == "fused"
        assert way(made.eval(), signal) == "plain"


@pytest.mark.cuda
def test_on_a_gpu_evaluation_is_as_exact_as_in_float64():
    """As on a CPU: torch's convolutions on a GPU are in TF32."""
    made, signal = network().cuda(), torch.randn(64, 1, 500, device="cuda")
    made(signal)  # for running statistics
    with torch.no_grad():
        found, expected = made.eval()(signal), copy.deepcopy(made).double()(signal.double())
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=2e-5 * float(expected.abs().max()))


def test_the_option_reaches_the_network_and_its_choices_are_to_be_compared():
    """`-o implementation=plain` for whoever wants to see, and `clocs verify` compares the two."""
    (offer,) = clocs_encoders()
    assert CNNOptions().implementation == "auto"
    assert offer.build(CNNOptions(implementation="plain"), 1, 500, 8).implementation == "plain"


RULES = checks_of_encoder(clocs_encoders()[0], CNNOptions(implementation="rows"), time.process_time)


@pytest.mark.parametrize("check", RULES, ids=str)
def test_an_encoder_in_rows_keeps_the_promises_of_encoders(check):
    """The rules see four signals, which are plain unless rows are asked for."""
    check.run()


@pytest.mark.parametrize("check", RULES, ids=str)
def test_an_encoder_in_rows_keeps_them_without_gradients_too(check):
    """Which is where rows evaluate."""
    if "gradient" not in str(check):
        with torch.no_grad():
            check.run()
