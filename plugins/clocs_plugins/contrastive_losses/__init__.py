"""Contrastive losses: patient-NCE of CLOCS and NT-Xent of SimCLR, each plain, in chunks, and as GPU kernels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Literal

import attrs

from clocs_core import Loss, hookimpl, option

if TYPE_CHECKING:
    from torch import Tensor

    from clocs_core import Ranks

POSITIVE = (lambda tau: 0 < tau < float("inf"), "be positive and finite")
HOW = "Implementation: plain, in chunks, by GPU kernels, or the fastest that runs."
HOW_FINE = "Precision of similarities in GPU kernels: float16, or nearly float32."


@attrs.frozen
class PatientNCEOptions:
    """Options of the loss `patient-nce`. "We chose the temperature parameter, tau = 0.1"."""

    temperature: float = option(0.1, "Temperature tau of the softmax.", check=POSITIVE)
    formula: Literal["paper", "released"] = option(
        "paper", "The paper's equations, or the released code: last pair of views, half of the pairs of a patient."
    )
    impl: Literal["auto", "reference", "chunked", "fused"] = option("auto", HOW, equivalent=True)
    precision: Literal["fp16", "near-fp32"] = option("fp16", HOW_FINE)


@attrs.frozen
class NTXentOptions:
    """Options of the loss `nt-xent`. "We chose the temperature parameter, tau = 0.1", as Chen et al. (2020)."""

    temperature: float = option(0.1, "Temperature tau of the softmax.", check=POSITIVE)
    impl: Literal["auto", "reference", "chunked", "fused"] = option("auto", HOW, equivalent=True)
    precision: Literal["fp16", "near-fp32"] = option("fp16", HOW_FINE)


@hookimpl
def clocs_losses() -> list[Loss]:
    """Offer both losses."""
    patient = "Patient-specific noise contrastive estimation, equations 1 to 4 of the paper."
    plain = "Normalised temperature-scaled cross-entropy of SimCLR: every other instance repels, of any patient."
    return [
        Loss(name="patient-nce", summary=patient, options=PatientNCEOptions, build=build_patient_nce),
        Loss(name="nt-xent", summary=plain, options=NTXentOptions, build=build_nt_xent),
    ]


def build_patient_nce(options: PatientNCEOptions) -> Callable[[Tensor, Tensor], Tensor]:
    """Build the loss at one temperature, by one of the two formulas."""
    from clocs_plugins.contrastive_losses.patient_nce import patient_nce

    return partial(
        patient_nce,
        temperature=options.temperature,
        variant=options.formula,
        impl=options.impl,
        precision=options.precision,
    )


def build_nt_xent(options: NTXentOptions) -> Callable[[Tensor, Tensor], Tensor]:
    """Build the loss at one temperature; it ignores the patient ids."""
    from clocs_plugins.contrastive_losses.nt_xent import nt_xent

    def loss(views: Tensor, patient: Tensor, ranks: Ranks | None = None) -> Tensor:
        return nt_xent(views, options.temperature, options.impl, options.precision, ranks)

    return loss
