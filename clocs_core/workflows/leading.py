"""Evaluate in several processes: process 0 leads, and names each classifier before all of them make it.

Process 0 knows which classifiers are missing: it reads the folder of the evaluation and the shared controls, and it
alone writes. The others make the same classifiers, to share the work of encoders, and forget them.
"""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import torch

from clocs_core.artifacts.predictions import Classifier
from clocs_core.evaluation.classifiers import ClassifierMaker
from clocs_core.train.ranks import Group

_BEGIN, _DISMISSED = "begin", ""


@attrs.frozen(eq=False)
class Lead:
    """Tells the other processes what to do. group: None where process 0 is alone; then nobody is told."""

    group: Group | None
    device: torch.device

    def begin(self) -> None:
        """Tell that there is something to evaluate."""
        self._tell(_BEGIN)

    def dismiss(self) -> None:
        """Tell that nothing is left to do."""
        self._tell(_DISMISSED)

    def announce(self, key: Classifier, checkpoint: Path | None) -> None:
        """Name a classifier, and the file of its checkpoint."""
        self._tell(json.dumps([*key, None if checkpoint is None else str(checkpoint)]))

    def _tell(self, text: str) -> None:
        if self.group is not None:
            self.group.texts(text, self.device)


def is_begun(group: Group, device: torch.device) -> bool:
    """Wait for process 0; return whether it evaluates, or has found a finished evaluation."""
    return group.texts("", device)[0] == _BEGIN


def make_what_is_named(maker: ClassifierMaker, group: Group) -> None:
    """Make every classifier that process 0 names, until nothing is left."""
    while text := group.texts("", maker.device)[0]:
        protocol, init, fraction, checkpoint = json.loads(text)
        maker.make((protocol, init, fraction), None if checkpoint is None else Path(checkpoint))
