"""Recordings that several runs of one process share: read once, and held once in the memory of a device."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from clocs_core.data.cohort import Cohort
from clocs_core.data.prepared import Prepared
from clocs_core.plan.evaluation import EvaluationPlan
from clocs_core.plan.pretraining import Plan


@attrs.frozen(eq=False)
class SharedRecordings:
    """The recordings that runs have read, by what their plans ask for."""

    _held: list[tuple[object, Cohort]] = attrs.field(factory=list, init=False)

    def get(self, plan: Plan | EvaluationPlan, read: Callable[[], Cohort]) -> Cohort:
        """Return the recordings of a plan; read them where no other plan asked for the same."""
        asked = _asked(plan)
        for known, cohort in self._held:
            if known == asked:
                return cohort
        return self.keep(plan, read())

    def keep(self, plan: Plan | EvaluationPlan, cohort: Cohort) -> Cohort:
        """Hold the recordings of a plan. Frames that another plan has read are taken from there, to be held once."""
        pretrain, evaluate = self._same(cohort.pretrain), self._same(cohort.evaluate)
        cohort = attrs.evolve(cohort, pretrain=pretrain, evaluate=evaluate)
        self._held.append((_asked(plan), cohort))
        return cohort

    def _same(self, one: Prepared) -> Prepared:
        for _, cohort in self._held:
            for held in (cohort.pretrain, cohort.evaluate):
                if (held.folder, held.fingerprint, held.channels) == (one.folder, one.fingerprint, one.channels):
                    return held
        return one


def _asked(plan: Plan | EvaluationPlan) -> object:
    """Return all that the recordings of a plan depend on."""
    data = plan.recordings
    framings = (plan.pretrain_framing, plan.evaluate_framing) if isinstance(plan, Plan) else (plan.framing,) * 2
    return data, data.names, data.fit, data.columns, *framings
