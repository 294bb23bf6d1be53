"""Two copies of a frame, for perturbations to tell apart."""

from __future__ import annotations

import pytest
import torch

from clocs_core.testing import synthetic_batch
from clocs_plugins.perturbed import PerturbedOptions, clocs_views


def made(perturb):
    (offer,) = clocs_views()
    batch = synthetic_batch(5, 1, 1, 40)
    return offer.build(PerturbedOptions(perturb=perturb))(batch, torch.Generator()), batch


@pytest.mark.parametrize(("perturb", "of_views"), [("both", "every"), ("one", "but the first")])
def test_a_frame_comes_twice_and_core_is_told_which_copy_to_perturb(perturb, of_views):
    """The paper has both readings."""
    views, batch = made(perturb)
    assert views.perturb == of_views
    assert views.signal.shape == (2, 5, 1, 40)
    for view in views.signal:
        assert torch.equal(view, batch.signal[:, 0])


def test_the_copies_lie_in_the_memory_of_the_batch():
    """Perturbing makes new tensors anyway."""
    views, batch = made("both")
    assert views.signal.untyped_storage().data_ptr() == batch.signal.untyped_storage().data_ptr()


@pytest.mark.parametrize(("perturb", "needed"), [("both", "random"), ("one", "some")])
def test_what_must_perturb_depends_on_how_many_copies_are_perturbed(perturb, needed):
    """A flip on both copies gives two equal inputs; on one copy it is a view of its own."""
    (offer,) = clocs_views()
    assert offer.needs(PerturbedOptions(perturb=perturb)).perturbations == needed


@pytest.mark.parametrize(("leads", "reads"), [("each", "one"), ("all", "all")])
def test_leads_are_read_one_by_one_or_together(leads, reads):
    (offer,) = clocs_views()
    needs = offer.needs(PerturbedOptions(leads=leads))
    assert (needs.channels, needs.encoder_channels) == (leads, reads)
