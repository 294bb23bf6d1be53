"""`clocs verify`: ways that agree, ways that do not, and ways that this machine does not have."""

from __future__ import annotations

from functools import partial
from typing import Literal

import attrs
import pytest
import torch
from fake_plugins import fake_point

from clocs_core import Loss, Method, Needs, Unavailable, ViewGenerator, Views, option
from clocs_core.cli import main
from clocs_core.plugins.catalogue import build_catalogue
from clocs_core.plugins.host import installed_entry_points, load_plugins
from clocs_core.settings.options import equivalents
from clocs_core.testing.agreement import verify_method


@attrs.frozen
class Ways:
    way: Literal["auto", "plain", "other", "wrong", "slightly", "raises", "absent"] = option(
        "auto", "how to compute", equivalent=True
    )


def spread(z, patient, way):
    if way == "absent":
        raise Unavailable("needs a machine that is not this one")
    if way == "raises":
        raise RuntimeError("an error\nof several lines")
    similarity = torch.einsum("ik,jk->ij", z[0], z[1]) if way == "other" else z[0] @ z[1].T
    loss = (similarity.logsumexp(1) - similarity.diagonal()).mean()
    if way == "wrong":
        return loss + (loss - loss.detach())  # the value of the loss, and twice its gradient
    return loss * (1 + 1e-3) if way == "slightly" else loss


def build(options):
    return partial(spread, way=options.way)


def pair_views(batch, generator):
    return Views(batch.signal.transpose(0, 1), batch)


def build_views(_options):
    return pair_views


def needs(_options):
    return Needs(segments=2)


OFFERS = {
    "clocs_losses": lambda: [Loss(name="many-ways", summary="s", options=Ways, build=build)],
    "clocs_views": lambda: [ViewGenerator(name="two", summary="s", needs=needs, build=build_views)],
    "clocs_methods": lambda: [Method(name="many", summary="s", views="two", encoder="cnn", loss="many-ways")],
}
SMALL = {"batch": 8, "samples": 500, "embedding_dim": 8}


def found():
    points = [*installed_entry_points(), fake_point("ways", **OFFERS)]
    catalogue, _ = build_catalogue(load_plugins(points))
    return {one.way: one for one in verify_method(catalogue, "many", torch.device("cpu"), **SMALL)}


def test_the_choices_that_must_agree_are_compared_with_the_first():
    assert equivalents(Ways) == {"way": ("plain", "other", "wrong", "slightly", "raises", "absent")}
    ways = found()
    assert ways["loss way=other"].holds
    assert ways["loss way=other"].gradient_error < 1e-12
    assert not ways["loss way=wrong"].holds
    assert ways["loss way=wrong"].loss_error < 1e-12
    assert ways["loss way=wrong"].gradient_error == pytest.approx(1.0)
    assert not ways["loss way=slightly"].holds
    assert ways["loss way=slightly"].loss_error == pytest.approx(1e-3, rel=0.01)


def test_a_way_that_fails_does_not_agree_and_one_that_is_not_here_is_not_judged():
    ways = found()
    assert (ways["loss way=raises"].problem, ways["loss way=raises"].holds) == ("an error", False)
    assert ways["loss way=absent"].skipped == "needs a machine that is not this one"
    assert ways["loss way=absent"].holds


def test_a_contrast_in_batches_agrees_with_one_loss_over_them():
    assert found()["gradcache, in four batches"].gradient_error < 1e-12


def test_the_command_ends_with_1_where_a_way_does_not_agree(capsys):
    arguments = ["verify", "--plugin", "many", "--batch-size", "8", "--samples", "500", "--device", "cpu"]
    assert main(arguments, [*installed_entry_points(), fake_point("ways", **OFFERS)]) == 1
    shown = capsys.readouterr().out
    assert "DOES NOT AGREE" in shown
    assert "FAILS: an error" in shown
    assert "not tried: needs a machine" in shown
