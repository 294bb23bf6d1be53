"""Fit many logistic regressions at once, on any device, to the optimum that scikit-learn's LogisticRegression defines.

A problem minimises the sum of its log losses plus |w|^2 / 2C; the intercept is not penalised. Problems on the same
rows (the classes of an any-of task, several C) are solved together. The solver is Newton's method: conjugate gradients
find each step, and the Hessians of the single logits, from a sample of the rows, precondition them.

Why our own: scikit-learn's solver runs on the CPU, one problem at a time, and by default stops early: its
probabilities are up to 0.2 away from the optimum (benchmarks/results/linear_differences.json).
"""

from __future__ import annotations

from typing import Protocol

import attrs
import torch
from torch import Tensor

TOLERANCE = 1e-10  # estimated distance to the optimum, as a share of the objective
_MEMORY = 2**30  # bytes of the problems that are solved together
_STEPS = 100  # Newton's steps at most; problems of an evaluation take 5 to 20
_PRODUCTS = 250  # conjugate gradients in one step at most
_HALVINGS = 40
_SAMPLE = 8  # rows of the preconditioner for each weight of a logit: a step takes 7 products instead of 50
_LARGEST = 6000  # weights of a logit up to which its Hessian is formed: 290 MB


class Curvature(Protocol):
    """The second derivative of the log loss at some logits."""

    def times(self, direction: Tensor) -> Tensor:
        """Multiply it with a direction `(row, problem, logit)`."""

    def diagonal(self) -> Tensor:
        """Return the second derivative by each logit, `(row, problem, logit)`."""

    def part(self, problems: Tensor) -> Curvature:
        """Return that of some of the problems."""


class Link(Protocol):
    """The log loss of logits `(row, problem, logit)`, and its derivatives. logits: how many a problem has."""

    @property
    def logits(self) -> int:
        """Logits of a problem."""

    def part(self, problems: slice | Tensor) -> Link:
        """Return some of the problems."""

    def loss(self, at: Tensor) -> Tensor:
        """Return the sum over rows, `(problem,)`."""

    def residual(self, at: Tensor) -> Tensor:
        """Return the derivative by each logit, `(row, problem, logit)`."""

    def curvature(self, at: Tensor) -> Curvature:
        """Return the second derivative."""


@attrs.frozen(eq=False)
class AnyOf:
    """Yes-or-no questions, one logit each. label: `(row, problem)`, 0 or 1."""

    label: Tensor
    logits: int = 1

    def part(self, problems: slice | Tensor) -> AnyOf:
        """Return the questions of these columns."""
        return AnyOf(self.label[:, problems])

    def loss(self, at: Tensor) -> Tensor:
        """Return the binary log loss."""
        one = at[..., 0]
        return (torch.nn.functional.softplus(one) - self.label * one).sum(0)

    def residual(self, at: Tensor) -> Tensor:
        """Return the probability minus the label."""
        return torch.sigmoid(at) - self.label.unsqueeze(-1)

    def curvature(self, at: Tensor) -> Curvature:
        """Return p (1 - p)."""
        probability = torch.sigmoid(at)
        return _Diagonal(probability * (1 - probability))


@attrs.frozen(eq=False)
class OneOf:
    """One class of several. label: `(row, 1, class)`, one-hot. All problems have these labels, and their own C."""

    label: Tensor

    @property
    def logits(self) -> int:
        """One for each class."""
        return int(self.label.shape[2])

    def part(self, problems: slice | Tensor) -> OneOf:
        """Return itself: all problems have the same labels."""
        return self

    def loss(self, at: Tensor) -> Tensor:
        """Return the negative log of the softmax."""
        return (torch.logsumexp(at, -1) - (at * self.label).sum(-1)).sum(0)

    def residual(self, at: Tensor) -> Tensor:
        """Return the probability minus the label."""
        return torch.softmax(at, -1) - self.label

    def curvature(self, at: Tensor) -> Curvature:
        """Return diag(p) - p p'."""
        return _Softmax(torch.softmax(at, -1))


@attrs.frozen(eq=False)
class Fitted:
    """The weights of several problems. converged: whether each reached the optimum. steps: of Newton's method."""

    weight: Tensor  # (feature, problem, logit)
    intercept: Tensor  # (problem, logit)
    converged: Tensor  # (problem,)
    steps: int

    def logits(self, x: Tensor) -> Tensor:
        """Compute the logits of rows."""
        return _logits(x, self.weight) + self.intercept  # (row, problem, logit)


def fit(x: Tensor, link: Link, c: Tensor, share: float = 1.0) -> Fitted:
    """Solve the problems of `link` on rows `(row, feature)` in float64.

    c: the C of each problem, `(problem,)`. share: a fraction of 1 solves fewer problems together, to use less memory.
    """
    z = torch.cat([x, x.new_ones(len(x), 1)], dim=1)  # (row, weight): features and the intercept
    size = min(z.shape[1], _LARGEST)
    bytes_each = (16 * size**2 + 80 * len(x)) * link.logits  # a Hessian and its factor; about ten tensors of logits
    together = max(1, int(share * _MEMORY / bytes_each))
    parts = (slice(at, at + together) for at in range(0, len(c), together))
    solved = [_solve(z, link.part(part), c[part]) for part in parts]
    return Fitted(
        torch.cat([one.weight for one in solved], dim=1),
        torch.cat([one.intercept for one in solved]),
        torch.cat([one.converged for one in solved]),
        max(one.steps for one in solved),
    )


def _solve(z: Tensor, link: Link, c: Tensor) -> Fitted:
    """Run Newton's method on all problems together. z: features and a column of ones, `(row, weight)`.

    A problem that has reached its optimum is left out of the next step.
    """
    penalty = (1 / c).repeat(z.shape[1], 1).unsqueeze(-1)  # (weight, problem, 1)
    penalty[-1] = 0
    found = z.new_zeros(z.shape[1], len(c), link.logits)  # (weight, problem, logit)
    converged = torch.zeros(len(c), dtype=torch.bool, device=z.device)
    left, w = torch.arange(len(c), device=z.device), found
    at = z.new_zeros(len(z), len(c), link.logits)  # (row, problem, logit)
    value, steps = _objective(link, at, w, penalty), 0
    while steps < _STEPS and len(left):
        steps += 1
        gradient = _products(z, link.residual(at)) + penalty * w
        hessian = _Hessian.at(z, link.curvature(at), penalty)
        direction = _conjugate_gradients(hessian, gradient, value)
        slope = (gradient * direction).sum((0, 2))  # (problem,): about minus twice the distance to the optimum
        along = _logits(z, direction)
        length = _step_length(link, (at, along), (w, direction), penalty, (value, slope))
        w, at = w + length * direction, at + length * along
        done = -slope / 2 <= TOLERANCE * value  # after its last step a problem is much nearer than this
        value = _objective(link, at, w, penalty)
        found[:, left] = w
        if bool(done.any()):
            converged[left[done]], open_ = True, (~done).nonzero()[:, 0]
            left, w, at, value, penalty = left[open_], w[:, open_], at[:, open_], value[open_], penalty[:, open_]
            link = link.part(open_)
    if link.logits > 1:
        found[-1] -= found[-1].mean(-1, keepdim=True)  # the softmax does not determine the sum of the intercepts
    return Fitted(found[:-1], found[-1], converged, steps)


@attrs.frozen(eq=False)
class _Hessian:
    """The second derivative of several objectives, and factors `(problem, logit, weight, weight)` that are near it.

    factors: None where logits have too many weights. They are of the Hessian of each logit by itself, from a sample of
    rows. Gradients and weights of a softmax sum to 0 over its logits, and so must what they solve.
    """

    z: Tensor  # (row, weight)
    curvature: Curvature
    penalty: Tensor  # (weight, problem, 1)
    factors: Tensor | None

    @classmethod
    def at(cls, z: Tensor, curvature: Curvature, penalty: Tensor) -> _Hessian:
        """Make the factors of some curvature."""
        if z.shape[1] > _LARGEST:
            return cls(z, curvature, penalty, None)
        every = 1 if z.is_cuda else max(1, len(z) // (_SAMPLE * z.shape[1]))  # a GPU forms the whole in milliseconds
        rows, diagonal = z[::every], curvature.diagonal()[::every]
        problems, logits = diagonal.shape[1:]
        hessians = z.new_empty(problems, logits, z.shape[1], z.shape[1])
        for problem in range(problems):
            for logit in range(logits):
                hessian = rows.T @ (rows * diagonal[:, problem, logit, None]) * (len(z) / len(rows))
                hessian.diagonal().add_(penalty[:, problem, 0].clamp_min(1e-9 * len(z)))  # intercepts have no penalty
                hessians[problem, logit] = hessian
        return cls(z, curvature, penalty, torch.linalg.cholesky_ex(hessians)[0])

    def part(self, problems: Tensor) -> _Hessian:
        """Return those of some problems."""
        factors = None if self.factors is None else self.factors[problems]
        return _Hessian(self.z, self.curvature.part(problems), self.penalty[:, problems], factors)

    def times(self, direction: Tensor) -> Tensor:
        """Multiply it with directions `(weight, problem, logit)`."""
        return _products(self.z, self.curvature.times(_logits(self.z, direction))) + self.penalty * direction

    def precondition(self, rest: Tensor) -> Tensor:
        """Solve with the factors."""
        if self.factors is None:
            return rest
        right = rest.permute(1, 2, 0).unsqueeze(-1)  # (problem, logit, weight, 1)
        solution = torch.cholesky_solve(right, self.factors)[..., 0].permute(2, 0, 1)  # (weight, problem, logit)
        return solution - solution.mean(-1, keepdim=True) if rest.shape[2] > 1 else solution


def _conjugate_gradients(hessian: _Hessian, gradient: Tensor, value: Tensor) -> Tensor:
    """Solve Hessian x direction = -gradient for all problems.

    The residual shrinks with the distance to the optimum, so that early steps cost little and late ones converge
    faster than linearly. When half of the problems are solved they are left out, since rare classes and large C take
    many more products than the others.
    """
    found = torch.zeros_like(gradient)
    left = torch.arange(gradient.shape[1], device=gradient.device)
    direction, residual = torch.zeros_like(gradient), -gradient
    search = hessian.precondition(residual)
    size = (residual * search).sum((0, 2))
    enough = size * (size / value).clamp(1e-9, 0.1)
    for _ in range(_PRODUCTS):
        live = size > enough
        count = int(live.sum())
        if count == 0:
            break
        if count <= len(left) / 2:
            found[:, left] = direction
            some = live.nonzero()[:, 0]
            hessian, left, size, enough = hessian.part(some), left[some], size[some], enough[some]
            direction, residual, search = direction[:, some], residual[:, some], search[:, some]
            live = live[some]
        product = hessian.times(search)
        bending = (search * product).sum((0, 2))
        step = torch.where(live & (bending > 0), size / bending, 0.0)[:, None]
        direction, residual = direction + step * search, residual - step * product
        scaled = hessian.precondition(residual)
        new = (residual * scaled).sum((0, 2))
        search = scaled + torch.where(live, new / size, 0.0)[:, None] * search
        size = torch.where(live, new, size)
    found[:, left] = direction
    return found


def _step_length(
    link: Link,
    logits: tuple[Tensor, Tensor],
    weights: tuple[Tensor, Tensor],
    penalty: Tensor,
    promised: tuple[Tensor, Tensor],
) -> Tensor:
    """Halve the step of each problem until its objective falls as its slope promises."""
    (at, along), (w, direction), (value, slope) = logits, weights, promised
    length = torch.ones_like(value)[:, None]  # (problem, 1)
    for _ in range(_HALVINGS):
        new = _objective(link, at + length * along, w + length * direction, penalty)
        good = new <= value + 1e-4 * length[:, 0] * slope + 1e-14 * value
        if bool(good.all()):
            break
        length = torch.where(good[:, None], length, length / 2)
    return length


def _objective(link: Link, at: Tensor, w: Tensor, penalty: Tensor) -> Tensor:
    return link.loss(at) + 0.5 * (penalty * w * w).sum((0, 2))  # (problem,)


def _logits(z: Tensor, w: Tensor) -> Tensor:
    return (z @ w.flatten(1)).view(len(z), *w.shape[1:])  # (row, problem, logit)


def _products(z: Tensor, by_row: Tensor) -> Tensor:
    return (z.T @ by_row.flatten(1)).view(z.shape[1], *by_row.shape[1:])  # (weight, problem, logit)


@attrs.frozen(eq=False)
class _Diagonal:
    value: Tensor  # (row, problem, 1)

    def times(self, direction: Tensor) -> Tensor:
        return self.value * direction

    def diagonal(self) -> Tensor:
        return self.value

    def part(self, problems: Tensor) -> _Diagonal:
        return _Diagonal(self.value[:, problems])


@attrs.frozen(eq=False)
class _Softmax:
    probability: Tensor  # (row, problem, class)

    def times(self, direction: Tensor) -> Tensor:
        scaled = self.probability * direction
        return scaled - self.probability * scaled.sum(-1, keepdim=True)

    def diagonal(self) -> Tensor:
        return self.probability * (1 - self.probability)

    def part(self, problems: Tensor) -> _Softmax:
        return _Softmax(self.probability[:, problems])
