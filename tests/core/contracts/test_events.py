"""The scalars of an epoch by name. Health is tested in core/train, the order of events in core/workflows."""

from __future__ import annotations

from fake_events import epoch_done


def test_scalars_have_the_names_of_the_curves_that_users_already_have():
    """Somebody who follows runs of two versions of clocs wants one curve, not two."""
    epoch = epoch_done(1, 4.0, [5.0], components={"pull": 0.5, "push": 3.5})
    assert list(epoch.scalars().items()) == [
        ("loss/train", 4.0),
        ("loss/validation", 5.0),
        ("health/effective_rank", 7.5),
        ("health/same_patient", 0.75),
        ("health/other_patient", 0.25),
        ("health/margin", 0.5),
        ("health/loss_over_log_batch", 0.5),
        ("components/pull", 0.5),
        ("components/push", 3.5),
    ]


def test_an_objective_without_components_adds_no_scalars():
    assert not [name for name in epoch_done(1, 4.0, [5.0]).scalars() if name.startswith("components")]
