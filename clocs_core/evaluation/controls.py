"""Name controls by all that they depend on, so that evaluations can share them.

A control is a classifier without pre-training; it is the same for every run that is evaluated on one task. Two
controls with one name are the same classifier, to the last bit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from clocs_core.artifacts.predictions import Classifier
from clocs_core.contracts.scores import PRIOR, RANDOM
from clocs_core.data.cohort import Cohort
from clocs_core.evaluation.labelled_frames import LabelledFrames
from clocs_core.plan.evaluation import EvaluationPlan
from clocs_core.settings.options import plain

_REVISION = 4  # raise it when the same facts give another classifier or another file; older controls are then ignored


def is_control(key: Classifier) -> bool:
    """Return whether a classifier is independent of the run: the untrained encoder's, or the class prior."""
    return key[1] == RANDOM


def control_name(facts: Mapping[str, Any]) -> str:
    """Hash all that a control depends on; the hash is the same in every process."""
    return sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]


def control_facts(
    key: Classifier, plan: EvaluationPlan, cohort: Cohort, rows: str, versions: Mapping[str, str]
) -> dict[str, Any]:
    """Return everything that a control depends on, as JSON values.

    rows: result of `digest_rows`, the same for all controls of an evaluation.
    versions: versions of the environment. Another device, thread count or library rounds differently.
    """
    protocol, _, fraction = key
    facts: dict[str, Any] = {
        "revision": _REVISION,
        "protocol": protocol,
        "label_fraction": fraction,
        "fraction_of": plan.settings.fraction_of,
        "part": plan.scoring.part,
        "task": plan.task.table(),
        "dataset": {"name": plan.dataset.offer.name, "options": plain(plan.dataset.options)},
        "framing": plain(plan.framing),
        "channels": list(cohort.channels),
        "frames": cohort.evaluate.fingerprint,  # hash of the files, the reader and the framing
        "rows": rows,
        "split": {"hash": cohort.split.hash, "seed": plan.data.split_seed},
        "versions": dict(versions),
    }
    if plan.protocol.offer.rows == "record":
        facts["per"] = "record"
    return facts if protocol == PRIOR else facts | _network(plan)


def _network(plan: EvaluationPlan) -> dict[str, Any]:
    """Return the facts about network and training, on which the class prior does not depend."""
    encoder = plan.encoder
    facts = {
        "encoder": {
            "name": encoder.encoder.offer.name,
            "options": plain(encoder.encoder.options),
            "inputs": encoder.inputs,
            "average": encoder.average,
            "embedding_dim": encoder.embedding_dim,
        },
        "normalise": plan.data.normalise if plan.data.constant is None else [plan.data.normalise, plan.data.constant],
        "seed": plan.settings.seed,
    }
    return facts | plan.protocol.facts(plan.metrics, plan.settings.step)


def digest_rows(frames: LabelledFrames) -> str:
    """Hash the frames and channels of each part, with their patients, records and labels."""
    digest = sha256(json.dumps([frames.store.patients, frames.store.records]).encode())
    for part, instances in frames.parts.items():
        rows = frames.rows[part]
        digest.update(part.encode())
        for column in (instances.frame.cpu().numpy(), instances.channel.cpu().numpy(), rows.label):
            digest.update(column.tobytes())
        for numbers in (rows.patient, rows.record):
            digest.update(numbers.tobytes())
    return digest.hexdigest()
