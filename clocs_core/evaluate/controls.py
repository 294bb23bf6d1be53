"""What a control depends on: classifiers without pre-training are the same for every run that is tried on one task.

Two evaluations whose controls have one name would make the same classifier, to the last bit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import attrs

from clocs_core.data.material import Material
from clocs_core.evaluate.bench import Bench
from clocs_core.evaluate.downstream import Downstream
from clocs_core.evaluate.predictionfile import Classifier
from clocs_core.evaluate.pretrained import RANDOM
from clocs_core.options import plain

__all__ = ["control_facts", "control_name", "digest_rows", "is_control"]

_REVISION = (
    1  # raise it when the same facts come to make another classifier or another file: older ones count no longer
)


def is_control(key: Classifier) -> bool:
    """Whether a classifier owes nothing to a run: the untrained encoder's, and the class prior."""
    return key[1] == RANDOM


def control_name(facts: Mapping[str, Any]) -> str:
    """A hash of all that a control depends on: the same in every process, another one where anything differs."""
    return sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]


def control_facts(
    key: Classifier, asked: Downstream, material: Material, rows: str, versions: Mapping[str, str]
) -> dict[str, Any]:
    """Everything that a control depends on, as JSON can hold it.

    rows: what `digest_rows` says, for all controls of an evaluation.
    versions: of the environment. Another device, thread count or library rounds otherwise.
    """
    protocol, _, fraction = key
    facts: dict[str, Any] = {
        "revision": _REVISION,
        "protocol": protocol,
        "label_fraction": fraction,
        "fraction_of": asked.asked.fraction_of,
        "part": asked.evaluate.part,
        "task": attrs.asdict(asked.task),
        "dataset": {"name": asked.dataset.offer.name, "options": plain(asked.dataset.options)},
        "framing": plain(asked.framing),
        "channels": list(material.channels),
        "frames": material.evaluate.fingerprint,  # of the files, the reader and the framing
        "rows": rows,
        "split": {"hash": material.split.hash, "seed": asked.data.split_seed},
        "versions": dict(versions),
    }
    return facts if protocol == "prior" else facts | _network(protocol, asked)


def _network(protocol: str, asked: Downstream) -> dict[str, Any]:
    """What the class prior does not depend on."""
    encoder = asked.encoder
    facts: dict[str, Any] = {
        "encoder": {
            "name": encoder.encoder.offer.name,
            "options": plain(encoder.encoder.options),
            "inputs": encoder.inputs,
            "embedding_dim": encoder.embedding_dim,
        },
        "normalise": asked.data.normalise,
        "seed": asked.asked.seed,
    }
    if protocol == "finetune":
        facts |= {
            "finetune": plain(asked.finetune),
            "step": asked.asked.step,
            "metrics": [metric.name for metric in asked.metrics],  # the first that fits scores the curve
        }
    return facts


def digest_rows(bench: Bench) -> str:
    """A hash of which frames and channels are in which part, whose they are, and their labels."""
    digest = sha256(json.dumps([bench.store.patients, bench.store.records]).encode())
    for part, instances in bench.parts.items():
        rows = bench.rows[part]
        digest.update(part.encode())
        for column in (instances.frame.cpu().numpy(), instances.channel.cpu().numpy(), rows.label):
            digest.update(column.tobytes())
        for numbers in (rows.patient, rows.record):
            digest.update(numbers.tobytes())
    return digest.hexdigest()
