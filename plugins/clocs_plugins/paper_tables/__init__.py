"""The tables and figures of the CLOCS paper as grids, with its numbers beside ours: `clocs grid run linear-main`.

Kiyasseh, Zhu and Clifton, "CLOCS: Contrastive Learning of Cardiac Signals Across Space, Time, and Patients", ICML 2021.
"""

from __future__ import annotations

from clocs_core import GridOffer, hookimpl
from clocs_plugins.paper_tables.tables import paper_grids


@hookimpl
def clocs_grids() -> tuple[GridOffer, ...]:
    """Offer every table and figure that is made of scores."""
    return paper_grids()
