"""The best encoders of a run: their weights and cards, and the scores of each."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
from torch import Tensor

from clocs_core.artifacts.card import EncoderCard
from clocs_core.artifacts.partial_input import weights_of_reader
from clocs_core.artifacts.reports import OtherEncoder
from clocs_core.evaluation.classifiers import Watch
from clocs_core.evaluation.own_encoder import Scored, score_own_encoder
from clocs_core.plan.evaluation import own_evaluation
from clocs_core.plan.pretraining import EncoderPart
from clocs_core.progress import COMMAND
from clocs_core.settings.options import plain
from clocs_core.workflows.environment import now
from clocs_core.workflows.training import Ready


@attrs.frozen(eq=False)
class BestEncoder:
    """An encoder of a run with the weights of the best epoch, what it reads, and the content of its file.

    saved: the weights in its file, each behind the number of its encoder. Encoders without readers share a file.
    """

    part: EncoderPart
    weights: dict[str, Tensor]
    saved: Mapping[str, Tensor]
    card: EncoderCard


def best_encoders(ready: Ready, versions: dict[str, str]) -> tuple[BestEncoder, ...]:
    """Return the encoders that are evaluated, in their order."""
    best = ready.learner.best
    parts = ready.plan.encoder_parts(ready.cohort.channels)
    if not ready.plan.needs.readers:
        (part,) = parts
        first = {name[2:]: tensor for name, tensor in best.items() if name.startswith("0.")}
        return (BestEncoder(part, first, best, _card(ready, part, ready.plan.needs.encoders, versions)),)
    found = []
    for number, part in enumerate(parts):
        weights = weights_of_reader(best, number, part.average)
        saved = {f"0.{name}": tensor for name, tensor in weights.items()}
        found.append(BestEncoder(part, weights, saved, _card(ready, part, 1, versions)))
    return tuple(found)


def _card(ready: Ready, part: EncoderPart, count: int, versions: dict[str, str]) -> EncoderCard:
    plan, cohort = ready.plan, ready.cohort
    return EncoderCard(
        method=plan.method.name,
        dataset=plan.dataset.offer.name,
        encoder=part.encoder.offer.name,
        options=plain(part.encoder.options),
        input_channels=part.inputs,
        frame_samples=plan.pretrain_framing.frame_samples,
        average=part.average,
        embedding_dim=plan.run.embedding_dim,
        count=count,
        channels=part.channels,
        run_channels=cohort.channels,
        unit=cohort.pretrain.unit,
        modality=plan.dataset.offer.modality,
        normalise=plan.data.normalise,
        constant=plan.data.constant,
        pretrain_framing=plan.pretrain_framing,
        framing=plan.evaluate_framing,
        frame_rate=cohort.evaluate.frame_rate or cohort.evaluate.stretched_rate,
        task=plan.task,
        split_hash=cohort.split.hash,
        settings=plan.tables(),
        licence=plan.dataset.offer.licence,
        versions=versions,
        command=COMMAND.get(),
        date=now(),
    )


def score_encoder(ready: Ready, encoder: BestEncoder, watch: Watch) -> Scored:
    """Score an encoder beside its controls, on the channels that it reads, with the code of `clocs evaluate`."""
    cohort = attrs.evolve(ready.cohort, channels=encoder.part.channels)
    evaluation = own_evaluation(ready.plan, encoder.part, encoder.weights)
    return score_own_encoder(evaluation, cohort, ready.device, watch)


def score_other(ready: Ready, encoder: BestEncoder, watch: Watch) -> OtherEncoder:
    """Score an encoder beside the first, for the report."""
    found = score_encoder(ready, encoder, watch).evaluation
    part = encoder.part
    return OtherEncoder(
        name=part.name,
        encoder=part.encoder.offer.name,
        channels=part.channels,
        scores=found.scores,
        comparisons=found.comparisons,
        notes=found.notes,
    )


def encoder_notes(ready: Ready) -> tuple[str, ...]:
    """Say which encoder the scores of a report are of, where they use fewer channels than the run was trained on."""
    plan, channels = ready.plan, ready.cohort.channels
    first, *others = plan.encoder_parts(channels)
    if others:
        beside = ", ".join(f"{one.name} ({', '.join(one.channels)})" for one in others)
        return (f"Scores are of encoder {first.name} ({', '.join(first.channels)}); those of {beside} stand apart.",)
    if first.channels == channels:
        return ()
    unread = ", ".join(name for name in channels if name not in first.channels)
    named = ", ".join(first.channels)
    return (f"Scores are of the first of {plan.needs.encoders} encoders, that of {named}; {unread} is not read.",)
