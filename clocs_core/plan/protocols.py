"""Find a protocol by its name: one of core's own, or one that a plugin offers."""

from __future__ import annotations

from types import ModuleType

from clocs_core.contracts.offers import Encoder
from clocs_core.contracts.records import Task
from clocs_core.contracts.result_offers import (
    FINETUNE,
    IDENTIFICATION,
    LINEAR,
    LINEAR_RECORD,
    Protocol,
)
from clocs_core.errors import SettingsError
from clocs_core.plan.chosen_protocol import ChosenProtocol
from clocs_core.plugins.catalogue import Catalogue, Offered, Shelf
from clocs_core.plugins.host import Plugin

OWN = {
    LINEAR: Protocol(name=LINEAR, summary="A linear model on the representations of the frozen encoder."),
    LINEAR_RECORD: Protocol(
        name=LINEAR_RECORD,
        summary="A linear model on one vector per recording, the mean of the frozen encoder's representations.",
        rows="record",
    ),
    FINETUNE: Protocol(name=FINETUNE, summary="All weights and a new linear head are trained.", validation=True),
    IDENTIFICATION: Protocol(
        name=IDENTIFICATION,
        summary="Find each patient by another recording of theirs, with the encoder frozen and without labels.",
        rows="record",
    ),
}
"""The protocols of core, which trains them by itself."""

_CORE = Plugin("clocs", "clocs", "itself", ModuleType("clocs"))


def find_protocol(catalogue: Catalogue, name: str) -> Offered[Protocol]:
    """Return a protocol by its name. Raises UnknownName, which lists those that there are."""
    own = tuple(Offered(offer, _CORE) for offer in OWN.values())
    shelf = catalogue.protocols
    return Shelf(Protocol, (*own, *shelf.offered), shelf.broken).get(name)


def refuse_other_task(protocol: ChosenProtocol, task: Task) -> None:
    """Raise SettingsError where a protocol cannot be used for a task."""
    offer = protocol.offer
    if task.kind not in offer.tasks:
        raise SettingsError(
            f"Protocol {offer.name!r} is for tasks of the kind {' and '.join(offer.tasks)}, and {task.name!r} is "
            f"of the kind {task.kind}. Choose another `protocol` or `task`."
        )
    if protocol.learns and offer.rows == "record" and task.per == "frame":
        raise SettingsError(
            f"Protocol {offer.name!r} predicts recordings, and {task.name!r} has a label for each frame. Choose "
            "another `protocol` or `task`."
        )


def refuse_no_sequence(protocol: Protocol, encoder: Encoder, catalogue: Catalogue) -> None:
    """Raise SettingsError where a protocol reads the encoder's sequence, and the encoder has none."""
    if protocol.sequence and not encoder.sequence:
        able = ", ".join(sorted(item.offer.name for item in catalogue.encoders if item.offer.sequence))
        raise SettingsError(
            f"Protocol {protocol.name!r} reads an encoder's sequence over time, and the encoder {encoder.name!r} has "
            f"none. Choose another `protocol`, or an encoder that has one ({able or 'none is installed'})."
        )
