"""Make the committed pages of the paper's tables, and the ten sentences about its claims, from the committed scores."""

from __future__ import annotations

from pathlib import Path

from paper_claims import write_claims

from clocs_core.grids.exported_files import read_kept
from clocs_core.grids.exported_pages import write_kept_pages
from clocs_core.grids.grid_file import read_grid_file, settle_grid
from clocs_core.plugins.catalogue import Catalogue

ROOT = Path(__file__).parents[2]
ASKED = ROOT / "benchmarks" / "paper.toml"
EXPORTS = ROOT / "benchmarks" / "results" / "paper"
COMMAND = "python benchmarks/run_all.py --pages"


def write_pages(catalogue: Catalogue, folder: Path) -> None:
    """Write a page for each table, one that lists them, and one for the claims. Say how much of each is made."""
    grid = settle_grid(read_grid_file(ASKED), catalogue)
    exports = sorted(path for path in EXPORTS.iterdir() if path.is_dir())
    kept = read_kept(exports, grid.measure)
    published = {item.offer.name: item.offer.published for item in catalogue.grids}
    write_kept_pages(grid, kept, published, folder, print)
    write_claims(grid, kept, published, folder / "claims.md", COMMAND)
    print(f"Pages: {folder}")
