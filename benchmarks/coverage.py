"""Find how often a 95 % interval of a mean over seeds and patients has the true value, in simulated experiments.

    python benchmarks/coverage.py

An experiment has a paired difference of every seed on every patient: the effect of the seed, plus that of the patient,
plus one of both together, all normal around a true value of 0. Each interval is computed as from real predictions:
from the mean of every seed, and from bootstrap draws of the patients that all seeds share. Several intervals are
compared; `over_seeds` is the one that clocs uses. The result is written to benchmarks/results/coverage.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import attrs
import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtrit

from clocs_core.evaluation.over_seeds import Between, half_width, spread_over_patients

Floats = NDArray[np.float64]

SEED_SDS = (0.0, 0.01, 0.02, 0.06)
SEEDS = (2, 3, 5, 10)
PATIENTS = (62, 250, 1000)
BOTH_SDS = (0.1, 0.2)  # of seed and patient together
PATIENT_SD = 0.1
DRAWS = 400
AT_ONCE = 250  # experiments that share their draws of patients

RESULT = Path(__file__).parent / "results" / "coverage.json"


@attrs.frozen
class Experiment:
    """How an experiment is simulated. The standard deviations are of one seed, of one patient, and of both."""

    seeds: int
    patients: int
    seed_sd: float
    both_sd: float


@attrs.frozen
class Simulated:
    """Experiments: the mean of every seed (experiment, seed), and its draws (experiment, seed, draw)."""

    values: Floats
    draws: Floats


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate every kind of experiment and write the coverage of every interval."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--experiments", type=int, default=500, help="how many of each kind")
    parser.add_argument("--out", type=Path, default=RESULT)
    given = parser.parse_args(arguments)
    rows = [
        attrs.asdict(one) | covered(one, given.experiments)
        for one in (Experiment(*each) for each in product(SEEDS, PATIENTS, SEED_SDS, BOTH_SDS))
    ]
    about = {"experiments": given.experiments, "draws": DRAWS, "patient_sd": PATIENT_SD}
    given.out.write_text(json.dumps(about | {"rows": rows}, indent=1) + "\n", encoding="utf-8")
    for name in (key for key in rows[0] if key not in attrs.fields_dict(Experiment)):
        two, more = ([row[name] for row in rows if (row["seeds"] == 2) is few] for few in (True, False))
        print(f"{name:25} {min(more):.3f} – {max(more):.3f}; two seeds {min(two):.3f} – {max(two):.3f}")
    return 0


def covered(one: Experiment, experiments: int) -> dict[str, float]:
    """Return the coverage of each interval: the probability that it has the true value."""
    rng = np.random.default_rng([one.seeds, one.patients, round(1000 * one.seed_sd), round(1000 * one.both_sd)])
    of_both = one.both_sd**2 / (one.seeds * one.patients)
    sd = np.sqrt(one.seed_sd**2 / one.seeds + PATIENT_SD**2 / one.patients + of_both)
    found: dict[str, list[Floats]] = {}
    for begin in range(0, experiments, AT_ONCE):
        simulated = simulate(one, min(AT_ONCE, experiments - begin), rng)
        # The mean of normal samples and the estimates of their variance are independent. So an interval around the
        # mean covers with this probability, and averaging it needs fewer experiments than counting does.
        for name, half in half_widths(simulated).items():
            found.setdefault(name, []).append(2 * ndtr(half / sd) - 1)
        for name, draws in bootstraps(simulated, rng).items():
            low, high = np.percentile(draws, [2.5, 97.5], axis=1)
            found.setdefault(name, []).append(((low <= 0) & (high >= 0)).astype(np.float64))
    return {name: round(float(np.concatenate(each).mean()), 4) for name, each in found.items()}


def simulate(one: Experiment, count: int, rng: np.random.Generator) -> Simulated:
    """Simulate experiments, with bootstrap draws of their patients."""
    of_seed = one.seed_sd * rng.standard_normal((count, one.seeds, 1))
    of_patient = PATIENT_SD * rng.standard_normal((count, 1, one.patients))
    both = one.both_sd * rng.standard_normal((count, one.seeds, one.patients), dtype=np.float32)
    every = (of_seed + of_patient + both).astype(np.float32)  # (experiment, seed, patient)
    drawn = rng.multinomial(one.patients, np.full(one.patients, 1 / one.patients), DRAWS)  # (draw, patient)
    weights = (drawn.T / one.patients).astype(np.float32)
    return Simulated(every.mean(axis=2, dtype=np.float64), (every @ weights).astype(np.float64))


def half_widths(simulated: Simulated) -> dict[str, Floats]:
    """Return half of the width of every interval around the mean, (experiment,) each."""
    values, seeds = simulated.values, simulated.values.shape[1]
    patients, overlap = spread_over_patients(simulated.draws)
    between = values.var(axis=1, ddof=1) / seeds
    single = simulated.draws.var(axis=2).mean(axis=1)
    estimated = np.maximum(0.0, single - patients) / (seeds - 1)  # what `over_seeds` has, but for two seeds
    beyond = np.maximum(0.0, between - overlap)
    freedom = (patients + beyond) ** 2 / np.maximum(np.where(beyond > 0, between, 0.0) ** 2 / (seeds - 1), 1e-300)
    return {
        "over_seeds": half_width(patients, [Between(seeds, between, overlap)]),
        "overlap estimated": half_width(patients, [Between(seeds, between, estimated)]),
        "overlap not known": half_width(patients, [Between(seeds, between, np.zeros_like(overlap))]),
        "Satterthwaite": stdtrit(np.minimum(freedom, 1e9), 0.975) * np.sqrt(patients + beyond),
        "t over seeds": stdtrit(seeds - 1, 0.975) * np.sqrt(between),
    }


def bootstraps(simulated: Simulated, rng: np.random.Generator) -> dict[str, Floats]:
    """Return draws of the mean (experiment, draw): of seeds and patients, and of patients alone."""
    seeds = simulated.values.shape[1]
    often = rng.multinomial(seeds, np.full(seeds, 1 / seeds), (len(simulated.values), DRAWS)) / seeds
    two_way = np.einsum("nrs,nsr->nr", often, simulated.draws)  # often: (experiment, draw, seed)
    return {"two-way bootstrap": two_way, "patients only": simulated.draws.mean(axis=1)}


if __name__ == "__main__":
    raise SystemExit(main())
