"""Photoplethysmograms for clocs: two data sets, three perturbations, and ECG against PPG."""

from __future__ import annotations

from clocs_core import Dataset, Method, Perturbation, ViewGenerator, hookimpl

from clocs_plugin_ppg.bidmc import BIDMC
from clocs_plugin_ppg.modalities import CROSS_MODAL, MODALITIES
from clocs_plugin_ppg.perturbations import DRIFT, MODULATION, MOTION
from clocs_plugin_ppg.ppg_bp import PPG_BP

CLOCS_API = "1.0"  # the API version that this plugin is written for


@hookimpl
def clocs_datasets() -> list[Dataset]:
    """Offer the data sets."""
    return [PPG_BP, BIDMC]


@hookimpl
def clocs_views() -> list[ViewGenerator]:
    """Offer the views of several modalities."""
    return [MODALITIES]


@hookimpl
def clocs_perturbations() -> list[Perturbation]:
    """Offer the perturbations of a pulse wave."""
    return [DRIFT, MODULATION, MOTION]


@hookimpl
def clocs_methods() -> list[Method]:
    """Offer the contrast of modalities."""
    return [CROSS_MODAL]
