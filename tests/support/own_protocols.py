"""The protocols of core with their settings, by name."""

from __future__ import annotations

from clocs_core import NoOptions
from clocs_core.plan.chosen_protocol import ChosenProtocol, choose_protocol
from clocs_core.plan.data import Chosen
from clocs_core.plan.protocols import OWN
from clocs_core.settings.sections import FinetuneSettings, ScoringSettings


def own_protocol(
    name: str, scoring: ScoringSettings | None = None, finetune: FinetuneSettings | None = None
) -> ChosenProtocol:
    """Return one of core's protocols, as a plan has it."""
    return choose_protocol(Chosen(OWN[name], NoOptions()), scoring or ScoringSettings(), finetune or FinetuneSettings())
