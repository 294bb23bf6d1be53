"""Names that an objective builds on become offers at the plan, before anything is read."""

from __future__ import annotations

import pickle

import pytest
from fake_offers import together
from fake_plugins import points
from torch import nn

from clocs_core import Column, Objective, Setup, Task
from clocs_core.errors import SettingsError, UnknownName
from clocs_core.plan.parts import with_parts
from clocs_core.plan.pretraining import resolve
from clocs_core.plugins.session import open_session

SETUP = Setup(encoder=nn.Linear(2, 2), embedding_dim=2, task=Task("t", classes=("a", "b")))


def build_setup(options, setup):
    """Return the setup in place of a module, to look at."""
    return setup


def objective(name, **more):
    return Objective(name=name, summary=f"The objective {name}.", build=build_setup, **more)


def catalogue_of(*objectives, **more):
    return open_session(points(clocs_objectives=lambda: list(objectives), **more), (), False).catalogue


def test_an_objective_finds_the_parts_that_it_names_and_no_others():
    inner = objective("inner", losses=("spread",))
    outer = objective("outer", objectives=("inner",))
    made = with_parts(outer, catalogue_of(inner, outer, objective("other")))
    setup = made.build(None, SETUP)
    assert [(one.kind, one.name) for one in setup.parts] == [("objective", "inner")]
    within = setup.objective("inner")
    assert [(one.kind, one.name) for one in within.parts] == [("loss", "spread")]


def test_a_part_may_be_named_with_its_plugin():
    outer = objective("outer", losses=("fakes:spread",))
    setup = with_parts(outer, catalogue_of(outer)).build(None, SETUP)
    assert callable(setup.loss("fakes:spread", temperature=0.5))


def test_an_objective_without_parts_stays_as_it_is():
    plain = objective("plain")
    assert with_parts(plain, catalogue_of(plain)) is plain


def test_an_objective_needs_what_its_parts_need():
    """Otherwise a run would begin with an encoder that has no sequence, or without the ages of patients."""
    inner = objective("inner", sequence=True, columns=(Column("age"),))
    outer = objective("outer", objectives=("inner",), columns=(Column("sex", "category"), Column("age")))
    found = with_parts(outer, catalogue_of(inner, outer))
    assert found.sequence
    assert [column.name for column in found.columns] == ["sex", "age"]


def test_a_part_that_is_not_installed_is_refused_with_its_objective():
    outer = objective("outer", losses=("sprad",))
    with pytest.raises(UnknownName, match=r"Objective 'outer' builds on a part .* No loss 'sprad'.* 'spread'"):
        with_parts(outer, catalogue_of(outer))


def test_an_objective_that_builds_on_itself_is_refused():
    one, two = objective("one", objectives=("two",)), objective("two", objectives=("one",))
    with pytest.raises(SettingsError, match=r"builds on itself: 'one' on 'two' on 'one'\. Its plugin"):
        with_parts(one, catalogue_of(one, two))


def test_a_plan_refuses_a_missing_part_before_anything_is_read():
    outer = objective("heads", losses=("gone",))
    catalogue = catalogue_of(outer, clocs_methods=lambda: [together("stateful", loss=None, objective="heads")])
    with pytest.raises(UnknownName, match="Objective 'heads' builds on a part that is not installed"):
        resolve(catalogue, {"run": {"method": "stateful", "dataset": "tiny"}})


def test_an_objective_with_parts_can_be_sent_to_another_process():
    made = with_parts(objective("outer", losses=("spread",)), catalogue_of())
    assert pickle.loads(pickle.dumps(made)) == made
