"""Several processes are one: every loss and objective has the same loss and gradients over ranks as without."""

from __future__ import annotations

import pytest
from rank_cases import DIM, OBJECTIVES, Case, Small, difference, in_one_process, on_rank

from clocs_core.testing.threads import new_meeting, on_meeting, on_ranks

RAGGED = (3, 0, 4)
SHARED = (5, 5, 7, 5, 8, 7, 9)
"""Patient 5 is in processes 0 and 2, as patient 7 is."""


def differ(case: Case) -> float:
    return difference(in_one_process(case), on_ranks(len(case.sizes), lambda group: on_rank(case, group)))


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.filterwarnings("ignore:Patient-NCE as released trains")
def test_ragged_parts_an_empty_one_and_shared_patients_change_nothing(objective: str) -> None:
    assert differ(Case(objective, RAGGED, 3, SHARED, norm=True)) < 1e-10
    assert differ(Case(objective, RAGGED, 2, SHARED, double=False)) < 2e-6


@pytest.mark.parametrize("objective", [name for name in OBJECTIVES if "nce" in name or "xent" in name])
@pytest.mark.filterwarnings("ignore:Patient-NCE as released trains")
@pytest.mark.parametrize("patients", [(1,) * 6, (1, 2, 3, 4, 5, 6)])
def test_one_patient_and_all_different_patients_change_nothing(objective: str, patients: tuple[int, ...]) -> None:
    assert differ(Case(objective, (2, 4), 2, patients)) < 1e-10


@pytest.mark.parametrize("ring", [False, True])
@pytest.mark.parametrize("views", [2, 3, 8])
@pytest.mark.parametrize("objective", ["patient-nce", "nt-xent"])
def test_one_instance_has_no_gradient_beyond_rounding_in_float32(objective: str, views: int, ring: bool) -> None:
    """It has nothing to be told apart from. Differences of large sums left 3e-6, with seeds 0, 2 and 5."""
    for seed in range(6):
        assert differ(Case(objective, (0, 1), views, (0,), seed=seed, double=False, ring=ring)) < 2e-6


def test_one_instance_among_several_processes_changes_nothing() -> None:
    for objective in ("patient-nce", "nt-xent", "vicreg", "byol"):
        assert differ(Case(objective, (0, 1, 0), 2, (3,))) < 1e-10


@pytest.mark.parametrize("objective", ["patient-nce", "stranger's loss"])
@pytest.mark.parametrize("norm", [False, True])
def test_a_step_sends_the_bytes_that_the_page_says(objective: str, norm: bool) -> None:
    """The formulas of docs/scale.md, in float32: what each process hands over in one step."""
    sizes, views = (4, 3), 3
    case = Case(objective, sizes, views, tuple(range(7)), double=False, norm=norm)
    meeting = new_meeting(2)
    weights = sum(w.numel() for w in Small(norm).parameters())
    on_meeting(meeting, lambda group: on_rank(case, group))
    k, whole = max(sizes), sum(sizes)
    if objective == "patient-nce":
        contrast = 4 * (views * k * DIM + views**2 * k)
    else:
        contrast = 4 * views * k * DIM + 4 * views * whole * DIM
    norms = 2 * 4 * (2 * Small.width + 1) if norm else 0
    for rank in range(2):
        assert sum(size for one, _, size in meeting.sent if one == rank) == contrast + 4 * weights + norms
