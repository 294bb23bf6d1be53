"""Build the objects that train from a plan: device, encoders, objective, views."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from clocs_core import seeds
from clocs_core.artifacts.networks import limit_modules
from clocs_core.artifacts.partial_input import Reading, build_coarser
from clocs_core.contracts.offers import Encoder, Loss, Reader, SignalFacts
from clocs_core.contracts.records import Column
from clocs_core.contracts.returned import function_returned, returned
from clocs_core.contracts.setup import Setup
from clocs_core.data.memory import physical_memory
from clocs_core.data.prepared import Prepared
from clocs_core.errors import ClocsError, PluginError, SettingsError
from clocs_core.plan.data import Chosen
from clocs_core.plan.pretrained import Pretrained
from clocs_core.plan.pretraining import Plan
from clocs_core.train.adam import Update
from clocs_core.train.captured import CapturedEpochs
from clocs_core.train.epochs import RunEpoch, plain_epoch
from clocs_core.train.gradcache import gradcache_epoch
from clocs_core.train.learner import Learner, start
from clocs_core.train.normalise import normaliser
from clocs_core.train.projector import Projector
from clocs_core.train.ranks import Group
from clocs_core.train.step import ContrastiveObjective, ViewMaker

_BYTES = 16  # of a weight in training: itself, its gradient and two averages of Adam, in float32


def choose_device(asked: str) -> torch.device:
    """Return the device of a name; `auto` is the GPU if there is one."""
    found = torch.cuda.is_available()
    if asked == "cuda" and not found:
        raise SettingsError(
            "`device='cuda'` was asked for, but torch finds no GPU here; use `device='cpu'` or `device='auto'`."
        )
    return torch.device("cuda" if found and asked != "cpu" else "cpu")


def build_encoders(plan: Plan, channels: int, device: torch.device) -> nn.ModuleList:
    """Build the encoders with random weights that follow from the seed. channels: number of chosen channels."""
    needs = plan.needs
    inputs = channels if needs.encoder_channels == "all" else 1
    samples, dim = plan.pretrain_framing.frame_samples, plan.run.embedding_dim
    if needs.readers:
        encoders = draw_readers(needs.readers, plan.readers, (inputs, samples), dim, plan.run.seed).to(device)
    else:
        encoders = draw_encoders(plan.encoder, inputs, samples, dim, plan.run.seed, needs.encoders).to(device)
    reads_sequence = plan.objective is not None and plan.objective.offer.sequence
    for encoder, chosen in zip(encoders, plan.readers or (plan.encoder,) * len(encoders), strict=True):
        _refuse_other_output(encoder, chosen, torch.Size((inputs, samples)), dim, device)
        if reads_sequence:
            _refuse_other_sequence(encoder, chosen, torch.Size((inputs, samples)), device)
    return encoders


def draw_readers(
    readers: Sequence[Reader], chosen: Sequence[Chosen[Encoder]], frame: tuple[int, int], embedding_dim: int, seed: int
) -> nn.ModuleList:
    """Build an encoder for each reader, on the CPU, that cuts its part out of frames (channel, sample)."""
    channels, samples = frame
    torch.manual_seed(seeds.derive(seed, "weights"))
    made = []
    for one, encoder in zip(readers, chosen, strict=True):
        first, end = one.channels
        inputs = len(range(channels)[first:end])
        (built,) = _draw(encoder, inputs, -(-samples // one.average), embedding_dim, 1)
        made.append(Reading(built, first, end, one.average))
    return nn.ModuleList(made)


def draw_encoders(
    chosen: Chosen[Encoder], inputs: int, samples: int, embedding_dim: int, seed: int, count: int = 1
) -> nn.ModuleList:
    """Build encoders for `inputs` channels and frames of `samples`, on the CPU; their weights follow from the seed."""
    torch.manual_seed(seeds.derive(seed, "weights"))  # layers draw their weights from torch's default generator
    return nn.ModuleList(_draw(chosen, inputs, samples, embedding_dim, count))


def _draw(chosen: Chosen[Encoder], inputs: int, samples: int, embedding_dim: int, count: int) -> list[nn.Module]:
    try:
        with _no_larger_than_memory():
            built = [chosen.offer.build(chosen.options, inputs, samples, embedding_dim) for _ in range(count)]
    except (ValueError, MemoryError) as problem:
        raise SettingsError(f"Encoder {chosen.offer.name!r} cannot be built: {problem}") from None
    return [returned(one, nn.Module, chosen.offer, "build") for one in built]


@contextmanager
def _no_larger_than_memory() -> Iterator[None]:
    """Raise ValueError where a network is built whose training takes more memory than the machine has."""
    memory = physical_memory()
    gigabytes = f"more than the {memory / 1e9:.0f} GB of this machine. Choose a smaller network."
    try:
        with limit_modules(memory / _BYTES, math.inf, f"to train its weights takes {gigabytes}"):
            yield
    except RuntimeError as problem:
        if not any(word in str(problem) for word in ("allocate", "overflow")):
            raise
        raise ValueError(f"its weights alone take {gigabytes}") from None


def build_encoder(one: Pretrained, samples: int, seed: int, trained: bool, device: torch.device) -> nn.Module:
    """Build the encoder for frames of `samples`, with its trained weights or with random ones drawn from `seed`."""

    def build(samples: int) -> nn.Module:
        return draw_encoders(one.encoder, one.inputs, samples, one.embedding_dim, seed)[0]

    encoder = build_coarser(build, samples, one.average)
    if trained:
        encoder.load_state_dict(one.weights)
    encoder = encoder.to(device)
    _refuse_other_output(encoder, one.encoder, torch.Size((one.inputs, samples)), one.embedding_dim, device)
    return encoder


def _refuse_other_output(
    encoder: nn.Module, chosen: Chosen[Encoder], frame: torch.Size, embedding_dim: int, device: torch.device
) -> None:
    """Raise PluginError unless two frames (channel, sample) become floats (2, embedding_dim) on the device.

    Without this, embeddings of another size reach the report, and sequences end the run after all its training.
    """
    promised = f"floats of shape (2, {embedding_dim}) on {device.type} for a signal of shape {(2, *frame)}"
    _refuse_other(encoder, encoder, f"{_named(chosen)} must give {promised}", frame, (2, embedding_dim), device)


def _refuse_other_sequence(
    encoder: nn.Module, chosen: Chosen[Encoder], frame: torch.Size, device: torch.device
) -> None:
    """Raise PluginError unless an encoder's sequence is as promised, SettingsError where frames are too short."""
    name = _named(chosen)
    stride, width = (getattr(encoder, size, None) for size in ("stride", "width"))
    if not callable(getattr(encoder, "sequence", None)) or not all(type(n) is int and n > 0 for n in (stride, width)):
        raise PluginError(
            f"{name} is offered with `sequence=True`, so its module must have the method `sequence` and the positive "
            f"integers `stride` and `width`; it has stride {stride!r} and width {width!r}. Its plugin has to be "
            "repaired."
        )
    assert isinstance(stride, int)
    if stride > frame[1]:
        raise SettingsError(
            f"Positions in the sequence of encoder {chosen.offer.name!r} are {stride} samples apart, and a frame has "
            f"{frame[1]}. Use longer frames (`frame_samples=...`), or an encoder with a shorter stride."
        )
    assert isinstance(width, int)
    shape = (2, -(-frame[1] // stride), width)
    promised = f"{name} must give a sequence of floats of shape {shape} on {device.type} for a signal of shape"
    _refuse_other(encoder, encoder.sequence, f"{promised} {(2, *frame)}", frame, shape, device)  # type: ignore[arg-type]


def _named(chosen: Chosen[Encoder]) -> str:
    return f"Encoder {chosen.offer.name!r}{chosen.owner and f' of {chosen.owner}'}"


def _refuse_other(
    encoder: nn.Module,
    call: Callable[[Tensor], object],
    promised: str,
    frame: torch.Size,
    shape: tuple[int, ...],
    device: torch.device,
) -> None:
    """Call the encoder on two frames, in eval mode. Raise PluginError unless it gives floats of a shape."""
    modes = [(module, module.training) for module in encoder.modules()]
    signal = torch.linspace(0, 1, frame[1], device=device).expand(2, *frame)
    encoder.eval()
    try:
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []), torch.no_grad():
            found = call(signal.clone())
    except (ClocsError, torch.OutOfMemoryError):
        raise
    except Exception as problem:  # code of a plugin may raise anything
        raise PluginError(f"{promised}, and fails: {type(problem).__name__}: {problem}") from problem
    finally:
        for module, mode in modes:
            module.training = mode
    if not isinstance(found, Tensor):
        given = f"a {type(found).__name__}"
    else:
        given = f"{str(found.dtype).removeprefix('torch.')} of shape {tuple(found.shape)} on {found.device.type}"
        if found.shape == shape and found.is_floating_point() and found.device.type == device.type:
            return
    raise PluginError(f"{promised}, and gives {given}. Its plugin has to be repaired.")


def describe_signals(plan: Plan, frames: Prepared, channels: tuple[str, ...]) -> SignalFacts:
    """Return what plugins are told of the signals of a run: its prepared frames, of the chosen channels."""
    return SignalFacts(
        unit=frames.unit,
        frame_rate=frames.frame_rate,
        samples=frames.framing.frame_samples,
        channels=channels,
        channel_axis=-2 if plan.needs.encoder_channels == "all" else None,
    )


def build_learner(
    plan: Plan, signals: SignalFacts, device: torch.device, instances: int = 1, columns: tuple[Column, ...] = ()
) -> Learner:
    """Build an untrained learner for the plan's method.

    instances: training instances that there are. columns: the facts about recordings that batches have.
    """
    encoders = build_encoders(plan, len(signals.channels), device)
    projector = draw_projector(plan)
    if plan.loss is not None:
        objective: nn.Module = ContrastiveObjective(_loss_of(plan.loss), projector)
    else:
        assert plan.objective is not None  # a Method names one of the two
        steps = -(-min(instances, plan.train.instances or instances) // plan.train.together)
        setup = Setup(
            encoder=encoders[0],
            embedding_dim=plan.run.embedding_dim,
            task=plan.task,
            perturbations=tuple(chosen.offer.name for chosen in plan.perturbations),
            encoders=tuple(encoders),
            signals=signals,
            columns=columns,
            steps_per_epoch=steps,
            steps=steps * plan.train.epochs,
            device=device,
            projector=projector,
            autocast=plan.train.autocast,
        )
        try:
            built = plan.objective.offer.build(plan.objective.options, setup)
        except ValueError as problem:
            why = str(problem).removesuffix(".")
            raise SettingsError(f"Objective {plan.objective.offer.name!r} cannot be built: {why}.") from None
        objective = returned(built, nn.Module, plan.objective.offer, "build")
        if projector is not None and not any(one is projector for one in objective.modules()):
            raise SettingsError(
                f"The objective {plan.objective.offer.name!r} of method {plan.method.name!r} has no place for a "
                "projector. Leave out `projector`."
            )
    return start(encoders, objective.to(device), plan.train.learning_rate, Update.of(plan.train))


def _loss_of(chosen: Chosen[Loss]) -> Callable[[Tensor, Tensor], Tensor]:
    return function_returned(chosen.offer.build(chosen.options), chosen.offer, "build")


def draw_projector(plan: Plan) -> Projector | None:
    """Build the projector of a plan, on the CPU, or None; its weights follow from the seed, and disturb no others."""
    widths = plan.train.projector
    if widths is None:
        return None
    try:
        with torch.random.fork_rng(devices=[]), _no_larger_than_memory():
            torch.manual_seed(seeds.derive(plan.run.seed, "projector"))
            return Projector(plan.run.embedding_dim, widths, plan.train.per_view, plan.train.autocast)
    except (ValueError, MemoryError) as problem:
        raise SettingsError(f"The projector cannot be built: {problem}") from None


def refuse_lone_instances(plan: Plan, device: torch.device) -> None:
    """Raise SettingsError where batches have one instance, and the loss of one instance has no gradient."""
    if plan.loss is None or plan.train.together > 1:
        return
    drawn = torch.randn(2, 1, plan.run.embedding_dim, generator=torch.Generator().manual_seed(0))
    z = drawn.to(device).requires_grad_()  # (view, batch, dim)
    loss = _loss_of(plan.loss)(z, torch.zeros(1, dtype=torch.int64, device=device))
    if loss.requires_grad:
        loss.backward()
    if z.grad is None or float(z.grad.abs().max()) < 1e-6:
        raise SettingsError(
            f"`batch_size=1` leaves the loss {plan.loss.offer.name!r} nothing to contrast: it compares an instance "
            "with the others of its batch, and alone it teaches the encoder nothing. Use a larger `batch_size`."
        )


def choose_epochs(
    plan: Plan, device: torch.device, warn: Callable[[str], None], group: Group | None = None
) -> RunEpoch:
    """Choose the function that runs the plan's epochs: captured steps on a GPU, unless the settings say otherwise.

    group: the processes that share the training.
    """
    if group is not None:
        _refuse_for_several(plan, group.count)
    steps = choose_steps(plan.run.step, device, warn)
    return steps if plan.train.contrast_batch is None else gradcache_epoch


def _refuse_for_several(plan: Plan, count: int) -> None:
    """Raise SettingsError for settings that several processes cannot serve."""
    if plan.train.together < count:
        name = "batch_size" if plan.train.contrast_batch is None else "contrast_batch"
        raise SettingsError(
            f"`{name}={plan.train.together}` is smaller than the {count} processes that share each batch. Use a "
            "larger batch, or fewer processes."
        )
    if plan.train.contrast_batch is not None and plan.train.sync_batchnorm:
        raise SettingsError(
            f"`contrast_batch={plan.train.contrast_batch}` encodes one batch at a time in each process, so that there "
            "are no statistics of BatchNorm to share. Leave out `sync_batchnorm` or `contrast_batch`."
        )


def choose_steps(asked: str, device: torch.device, warn: Callable[[str], None]) -> RunEpoch:
    """Choose the function that runs an epoch: `plain`, `captured`, or with `auto` captured where there is a GPU."""
    if asked == "captured" and device.type != "cuda":
        raise SettingsError("`step='captured'` needs a GPU, since it captures CUDA graphs. Use `step='auto'`.")
    return plain_epoch if asked == "plain" or device.type != "cuda" else CapturedEpochs(warn)


def build_views(plan: Plan, signals: SignalFacts) -> ViewMaker:
    """Build the plan's view generator, followed by its perturbations and the normalisation."""
    perturbations = []
    for chosen in plan.perturbations:
        try:
            built = chosen.offer.make(chosen.options, signals)
        except ValueError as problem:
            raise SettingsError(f"Perturbation {chosen.offer.name!r} cannot be used here: {problem}") from None
        way = "build" if chosen.offer.build_for is None else "build_for"
        perturbations.append(function_returned(built, chosen.offer, way))
    views = plan.views.offer
    return ViewMaker(
        generate=function_returned(views.build(plan.views.options), views, "build"),
        perturbations=tuple(perturbations),
        normalise=normaliser(plan.data.normalise, plan.data.constant),
        read=tuple(reader.channels for reader in plan.needs.readers),
    )
