"""The joint objective: CPC inside each recording, and patient-NCE across recordings.

    L = rhythm · CPC(sequences of all views) + patient · patient-NCE(projected embeddings of the views)

Patient-NCE alone is soon solved by a network of all leads: little more than the axis of the heart may be needed to tell
patients apart, and the rhythm is not. CPC's negatives are positions of the same recording, which neither patient nor
leads can tell apart, so the encoder has to follow the beats. Patient-NCE acts on the output of a projector, so the
embedding need not lose what only CPC uses. The projector is not evaluated.

An encoder that can make embeddings of its sequences, as s4d can, reads the signals once for both parts.
"""

from __future__ import annotations

import attrs
import torch
from torch import Tensor, nn

from clocs_core import Encode, Setup, Views
from clocs_plugins.rhythm_and_patient import RhythmAndPatientOptions


class RhythmAndPatient(nn.Module):
    """The objective: CPC's networks if it has a weight, and the projector of the run."""

    def __init__(self, options: RhythmAndPatientOptions, setup: Setup) -> None:
        super().__init__()
        if not options.rhythm and not options.patient:
            raise ValueError("`rhythm` and `patient` are both 0: give one of them a weight")
        self.weights = {"rhythm": options.rhythm, "patient": options.patient}
        self.cpc = setup.objective("cpc", ahead=options.ahead) if options.rhythm else None
        self.projector = setup.projector
        self.nce = setup.loss("patient-nce", temperature=options.temperature)

    def forward(self, encode: Encode, views: Views) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss of one batch, and each part's own, without its weight."""
        parts: dict[str, Tensor] = {}
        read: Encode | _Known = encode
        if self.weights["patient"]:
            if self.cpc is None:
                z = encode(views.signal)  # (view, batch, dim)
            else:
                z, sequence = encode.both(views.signal)
                read = _Known(sequence)
            parts["patient"] = self.nce(z if self.projector is None else self.projector(z), views.batch.patient)
        if self.cpc is not None:
            parts["rhythm"], _ = self.cpc(read, views)
        return torch.stack([self.weights[name] * one for name, one in parts.items()]).sum(), parts


@attrs.frozen(eq=False)
class _Known:
    """Gives CPC the sequences of the views, which the encoder has made already."""

    known: Tensor  # (view, batch, time, width)

    def sequence(self, _signal: Tensor) -> Tensor:
        return self.known
