"""Choose the method of a run by its name, with the presets of the method, its variant and its encoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from clocs_core.contracts.offers import Dataset, Encoder, Method, Presets
from clocs_core.contracts.scores import CONTROLS
from clocs_core.errors import SettingsError, UnknownName, neighbours
from clocs_core.plan.layers import Assignment, Layers, overlaid, structure_presets
from clocs_core.plugins.catalogue import Catalogue
from clocs_core.settings.options import field_types, structure
from clocs_core.settings.sections import RunSettings
from clocs_core.settings.toml_file import Tables


def choose_method(
    catalogue: Catalogue, tables: Tables, given: Sequence[Assignment]
) -> tuple[RunSettings, Method, Dataset, Presets]:
    """Return the table [run] with the method's presets, the method, the data set, and presets of other tables."""
    run_given = [one for one in given if one.table == "run" or (not one.table and one.name in field_types(RunSettings))]
    run_given = [one for one in run_given if one.name != "perturbations" or one.value is not None]  # None: not given
    asked = overlaid(RunSettings, tables.get("run", {}), run_given)
    if asked.get("perturbations") == "none":  # written out, it means no perturbations, not the method's own
        asked["perturbations"] = []
    run = structure(RunSettings, asked, "run")
    if not run.method or not run.dataset:
        missing = "a method (`method=NAME`)" if not run.method else "a data set (`dataset=NAME`)"
        raise SettingsError(f"A run needs {missing}. `clocs plugins` lists what is installed.")
    method = catalogue.methods.get(run.method).offer
    refuse_control_name(method.name)
    dataset = catalogue.datasets.get(run.dataset).offer
    _refuse_other_variant(tables, run.variant)
    variant = _presets_of_variant(method, run.variant)
    presets = _stacked(method.presets, variant, method.on_dataset.get(dataset.name, {}))
    encoder = str(asked.get("encoder") or method.encoder)
    suiting = catalogue.encoders.get(encoder).offer.presets.get("run", {})
    preset = presets.pop("run", {})
    run = structure_presets(RunSettings, {**preset, **suiting, **asked}, preset, "run")
    run = attrs.evolve(
        run,
        encoder=run.encoder or method.encoder,
        perturbations=method.perturbations if run.perturbations is None else run.perturbations,
    )
    unused = set(method.perturbations) - set(run.perturbations or ())
    if run.encoder != method.encoder:
        unused.add("encoder")  # the presets are for the method's default encoder
    return run, method, dataset, {name: table for name, table in presets.items() if name not in unused}


def add_presets(layers: Layers, encoder: Encoder, classes: Mapping[str, type[Any]]) -> None:
    """Add an encoder's presets to the defaults: those of tables and options that the run has.

    A method with a learning rate of its own keeps its training: it was chosen as a whole.
    """
    taken = {"train"} if "learning_rate" in layers.presets.get("train", {}) else set()
    for table, values in encoder.presets.items():
        known = field_types(classes[table]) if table in classes and table not in taken else {}
        fitting = {name: one for name, one in values.items() if name in known}
        layers.defaults[table] = {**layers.defaults.get(table, {}), **fitting}


def refuse_control_name(method: str) -> None:
    """Raise SettingsError for a method that has the name of a control: reports could not tell the two apart."""
    if method in CONTROLS:
        raise SettingsError(
            f"A method cannot be named {method!r}: in reports this is the name of a control. Its plugin has to give it "
            "another name."
        )


def _presets_of_variant(method: Method, name: str) -> Presets:
    if not name:
        return {}
    if name not in method.variants:
        found = neighbours(name, method.variants) or " It has none."
        raise UnknownName(f"Method {method.name!r} has no variant {name!r}.{found}")
    return method.variants[name].presets


def _refuse_other_variant(tables: Tables, name: str) -> None:
    """Raise SettingsError where a settings file was written for another variant: its values would override this one."""
    written = tables.get("run", {}).get("variant", name)
    if written != name:
        raise SettingsError(
            f"The settings are those of variant {str(written or 'none')!r}, all its values written out; variant "
            f"{name!r} would be a name only. Start from flags instead of this file."
        )


def _stacked(*layers: Presets) -> dict[str, Mapping[str, object]]:
    """Merge the tables of all layers; later layers win, key by key."""
    names = dict.fromkeys(name for layer in layers for name in layer)
    return {name: {key: value for layer in layers for key, value in layer.get(name, {}).items()} for name in names}
