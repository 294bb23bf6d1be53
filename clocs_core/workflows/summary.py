"""Summarise a run: its recordings and split, embeddings with names, distances, retrieval, views."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from hashlib import sha256

import numpy as np
import torch

from clocs_core import seeds
from clocs_core.artifacts.recordings import UsedRecordings
from clocs_core.artifacts.reports import PatientSeparation, RetrievalRow, SplitSummary
from clocs_core.artifacts.split import PARTS
from clocs_core.contracts.events import EmbeddingMap, Picture
from clocs_core.contracts.kinds import kind_of
from clocs_core.contracts.records import Column, Entry, Label, Part
from clocs_core.contracts.scores import CHANCE
from clocs_core.data.audit import Audit
from clocs_core.data.cohort import Cohort
from clocs_core.data.store import Instances, Store
from clocs_core.evaluation.distance_bins import PatientDistances, coarsen
from clocs_core.evaluation.features import Features
from clocs_core.evaluation.retrieval import Nearness, Retrieval, retrieve
from clocs_core.plan.pretraining import Plan
from clocs_core.report.pictures import draw_views
from clocs_core.train.build import build_views, describe_signals
from clocs_core.workflows.drawing import Drawing, Drawn


def name_embeddings(plan: Plan, store: Store, rows: Features) -> EmbeddingMap:
    """Attach the names of patients, records and labels to embeddings."""
    return EmbeddingMap(
        embedding=rows.embedding,
        patient=tuple(store.patients[number] for number in rows.patient),
        record=tuple(store.records[number] for number in rows.record),
        label=tuple(kind_of(plan.task).row_in_words(label, plan.task) for label in rows.label),
        part=plan.evaluate.part,
    )


def part_notes(part: Part) -> tuple[str, ...]:
    """Note that scores of the validation part are no test."""
    if part == "test":
        return ()
    return ("Scores are of the validation patients, on whom choices are made: they are no test.",)


def leak_notes(leaks: Audit) -> tuple[str, ...]:
    """Note where two parts share a signal."""
    if not leaks.twins:
        return ()
    first = leaks.twins[0]
    return (
        f"{len(leaks.twins)} pairs of recordings in different parts share a signal, such as {first.record} "
        f"({first.part}) and {first.other} ({first.other_part}): scores may be too good.",
    )


def summarise_split(cohort: Cohort, frames: dict[Part, int], audit: Audit) -> SplitSummary:
    """Count the patients, recordings and frames of each part."""
    split = cohort.split
    records: dict[str, int] = dict.fromkeys(PARTS, 0)
    for entry in cohort.listing.entries:
        records[split.parts[entry.patient]] += 1
    return SplitSummary(
        hash=split.hash,
        rule=split.rule,
        seed=split.seed,
        patients=dict(split.counts().items()),
        frames=dict(frames.items()),
        records=records,
        shared_patients=audit.shared_patients,
        duplicate_signals=len(audit.twins),
    )


def summarise_recordings(cohort: Cohort) -> UsedRecordings:
    """Count and hash the recordings, for a resumed run to notice that they changed."""
    entries, sets = cohort.listing.entries, (cohort.pretrain, cohort.evaluate)
    return UsedRecordings(
        recordings=len(entries),
        patients=len(cohort.split.parts),
        split=cohort.split.hash,
        labels=_digest([_plain_entry(entry, cohort.columns) for entry in entries]),
        files=tuple(dict.fromkeys(one.fingerprint for one in sets)),
        frames=_digest(
            [[[piece.sha256 for piece in one.checksums[name]] for name in sorted(one.checksums)] for one in sets]
        ),
    )


def _plain_entry(entry: Entry, columns: tuple[Column, ...]) -> list[object]:
    """Return all that a run takes from an entry, but for its files."""
    about = [[entry.about.get(column.name) for column in columns]] if columns else []
    return [entry.record, entry.patient, _plain_label(entry.label), *about]


def _plain_label(label: Label) -> object:
    if label is None or isinstance(label, (int, float)):
        return label
    if isinstance(label, frozenset):
        return sorted([one] for one in label)
    episodes = sorted(label, key=lambda one: (one.onset, one.offset, sorted(one.classes)))
    held = [(one, sorted(one.label) if isinstance(one.label, frozenset) else one.label) for one in episodes]
    return [[one.onset, one.offset, label] for one, label in held]


def _digest(facts: object) -> str:
    return sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def summarise_distances(distances: Mapping[str, PatientDistances | None]) -> tuple[PatientSeparation, ...]:
    """Summarise the distances of each encoder that has them, as three numbers and a small histogram."""
    return tuple(_separation(init, one) for init, one in distances.items() if one is not None)


_BINS = 64  # enough for a curve, and keeps the report small


def _separation(init: str, found: PatientDistances) -> PatientSeparation:
    edges, intra, inter = coarsen(found, _BINS)
    return PatientSeparation(
        init=init,
        intra_mean=found.intra_mean,
        inter_mean=found.inter_mean,
        separation=found.separation,
        edges=tuple(edges.tolist()),
        intra=tuple(intra.tolist()),
        inter=tuple(inter.tolist()),
    )


def summarise_retrieval(
    features: Mapping[str, Features], device: torch.device, tick: Callable[[int, int], None]
) -> tuple[RetrievalRow, ...]:
    """Score the retrieval of every encoder, for every question that has relevant rows, and the retrieval by chance.

    Chance is an encoder that maps everything to one point: all rows tie, and all orders of ties count equally.
    """
    rows: list[RetrievalRow] = []
    ways: tuple[Nearness, ...] = ("euclidean", "cosine")
    for nearness in ways:
        for init, found in features.items():
            rows += [_retrieval_row(init, nearness, one) for one in retrieve(found, nearness, device, tick)]
    for found in list(features.values())[:1]:
        blind = Features(np.zeros((len(found), 1), np.float32), found.label, found.patient, found.record)
        rows += [_retrieval_row(CHANCE, "any", one) for one in retrieve(blind, "euclidean", device, tick)]
    order = list(dict.fromkeys(row.relevant for row in rows))
    return tuple(sorted((row for row in rows if row.queries), key=lambda row: order.index(row.relevant)))


def _retrieval_row(init: str, nearness: str, found: Retrieval) -> RetrievalRow:
    one, five, ten = found.recall
    return RetrievalRow(
        init=init,
        relevant=found.relevant,
        nearness=nearness,
        recall_at_1=one,
        recall_at_5=five,
        recall_at_10=ten,
        mean_average_precision=found.mean_average_precision,
        queries=found.queries,
        left_out=found.left_out,
        rows=found.rows,
    )


_COLUMNS = 8  # views that fit on a page


def begin_views(
    plan: Plan, cohort: Cohort, store: Store, validation: Instances, drawing: Drawing
) -> Drawn[list[Picture]]:
    """Begin to draw three validation instances, spread over the part, as the encoder sees them."""
    rows = torch.linspace(0, len(validation) - 1, min(3, len(validation))).long().to(store.device)
    views = build_views(plan, describe_signals(plan, cohort.pretrain, cohort.channels))(
        store.gather(validation, rows), seeds.generator(store.device, plan.run.seed, "traces")
    )
    shown = views.signal[:_COLUMNS, :, 0].transpose(0, 1).cpu().numpy()  # (instance, view, sample)
    one_channel = plan.needs.channels == "each"
    titles = [
        f"{store.patients[patient]}, {store.records[record]}" + (f", {cohort.channels[channel]}" if one_channel else "")
        for patient, record, channel in zip(
            views.batch.patient.tolist(), views.batch.record.tolist(), views.batch.channel.tolist(), strict=True
        )
    ]
    names = [f"view {number + 1} of {len(views.signal)}" for number in range(shown.shape[1])]
    if views.perturb == "one each":
        names = ["clean", *(chosen.offer.name for chosen in plan.perturbations)][: shown.shape[1]]
    return drawing.begin(draw_views, shown, titles, names, cohort.pretrain.frame_rate, len(views.signal))
