"""List what can be run: every grid by name with its data, and every cell of a grid."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from clocs_core.grids.available_data import Shelf
from clocs_core.grids.axes import Repeats
from clocs_core.grids.cells import GridCell, group_by_evaluation
from clocs_core.grids.presets import Preset, wanted_cells, wanted_runs
from clocs_core.grids.results import Results


def list_presets(presets: Sequence[Preset], shelf: Shelf, repeats: Repeats, results: Results | None = None) -> str:
    """Write a paragraph for each table or figure. results: count what is made there, too."""
    lines: list[str] = []
    for preset in presets:
        where = f"  ({preset.printed_in})" if preset.printed_in else ""
        lines += [f"{preset.name}{where}", f"  {preset.title}"]
        lines += [
            f"  {_size(preset, repeats)}",
            *_made(preset, repeats, results),
            f"  data: {', '.join(_data(preset, shelf))}",
        ]
    return "\n".join(lines)


def list_cells(cells: Iterable[GridCell], results: Results) -> str:
    """Write a line for each cell, with its state."""
    return "\n".join(f"{_state(cell, results):8}{_say(cell)}" for cell in cells)


def _made(preset: Preset, repeats: Repeats, results: Results | None) -> list[str]:
    """Count the jobs of a table that are done; those that it shares with other tables are counted there, too."""
    if results is None:
        return []
    cells, runs = wanted_cells([preset], repeats), wanted_runs([preset], repeats)
    trained = {run for run in (*runs, *(cell.pretraining for cell in cells)) if run.trains}
    evaluations = group_by_evaluation(cells)
    done = sum(all(map(results.is_done, group)) for group in evaluations.values())
    made = f"{sum(map(results.is_trained, trained)):,} of {len(trained):,} pre-trainings"
    scores = (
        f", {done:,} of {len(evaluations):,} evaluations, {sum(map(results.is_done, cells)):,} of {len(cells):,} cells"
    )
    return [f"  made: {made}{scores if cells else ''}"]


def _size(preset: Preset, repeats: Repeats) -> str:
    cells, runs = wanted_cells([preset], repeats), wanted_runs([preset], repeats)
    trained = len({cell.pretraining for cell in cells} | set(runs))
    scores = f", {len(cells):,} cells" if cells else ""
    return f"{trained:,} pre-trainings{scores} with {len(repeats.seeds)} seeds"


def _data(preset: Preset, shelf: Shelf) -> list[str]:
    """Say whether a folder is there. Whether all recordings are in it shows when they are listed, which takes long."""
    return [f"{name} ({'folder found' if shelf.has(name) else 'not found'})" for name in preset.datasets]


def _state(cell: GridCell, results: Results) -> str:
    found = results.cell(cell)
    return "missing" if found is None else "done" if found.report else "failed"


def _say(cell: GridCell) -> str:
    run = cell.pretraining
    about = " ".join([run.method, *run.options, *(("on", run.dataset) if run.trains else ())])
    return (
        f"{about}, leads {run.leads or 'own'}, E {run.embedding_dim}, seed {run.seed}, split "
        f"{run.split_seed} -> {cell.downstream}, {cell.protocol}, F {cell.label_fraction:g}, {cell.part}"
    )
