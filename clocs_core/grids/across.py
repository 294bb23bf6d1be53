"""List the conditions of a table that are compared though they stand in different places.

A table compares methods in one place. Its figure compares more: fewer labels with all of them, or embedding dimensions.
Both sides are scored on the same patients, so that their draws are paired.
"""

from __future__ import annotations

import attrs

from clocs_core.grids.presets import Preset
from clocs_core.grids.summary import Across


def pairs_across(preset: Preset) -> tuple[Across, ...]:
    """List these pairs of a table.

    Fewer labels: a method with each fraction, and the untrained encoder with all labels. Dimensions: a method with each
    E, and with each smaller one.
    """
    trained = [one for one in preset.conditions if one.trains]
    if preset.figure == "less":
        whole = {attrs.evolve(one, label_fraction=0.0): one for one in trained if one.label_fraction == 1}
        both = ((one, whole.get(attrs.evolve(one, label_fraction=0.0))) for one in trained)
        return tuple(Across(one, other, True) for one, other in both if other is not None)
    if preset.figure == "dimension":
        return tuple(
            Across(one, other)
            for one in trained
            for other in trained
            if one.embedding_dim > other.embedding_dim and attrs.evolve(one, embedding_dim=other.embedding_dim) == other
        )
    return ()
