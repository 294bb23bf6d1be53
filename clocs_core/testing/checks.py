"""A check: one rule of the contract, one offer, and a function that raises if the offer breaks the rule.

A rule is a function of a case (the offer and the inputs to run it). Its name is the check's name and its docstring
states the rule; a failure shows both.
"""

from __future__ import annotations

import inspect
import sys
import traceback
import unittest
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import attrs

from clocs_core.contracts.offers import Offer

C = TypeVar("C")
Rule = Callable[[C], None]


class ConformanceError(AssertionError):
    """Raised when an offer breaks a rule; the message says what was expected, what was found and what to change."""


@attrs.frozen
class Check:
    """One rule for one offer. `run` raises ConformanceError if the offer breaks it; str() is an id for a test.

    rule: the rule as a sentence.
    """

    name: str
    offer: str
    run: Callable[[], None] = attrs.field(repr=False)
    rule: str = attrs.field(default="", repr=False)

    def __str__(self) -> str:
        return f"{self.offer}:{self.name}"


def failures(checks: Iterable[Check]) -> dict[str, str]:
    """Run checks; return the messages of those that fail, by name. A skipped check does not fail."""
    found: dict[str, str] = {}
    for check in checks:
        try:
            check.run()
        except ConformanceError as problem:
            found[check.name] = str(problem)
        except unittest.SkipTest:
            continue
    return found


def expect(holds: bool, expected: str, found: object, change: str) -> None:
    """Raise ConformanceError unless `holds`. The three texts form the message; `change` is a whole sentence."""
    if not holds:
        raise ConformanceError(f"expected {expected}; found {found}. {change}")


def label_of(offer: Offer) -> str:
    """Return the name of an offer in checks, such as "loss:patient"."""
    return f"{offer.kind}:{offer.name}"


def rules_of(module: str) -> list[Rule[Any]]:
    """Return the rules of a module, in their order: its functions of one parameter, `case`. So none is forgotten."""
    functions = (one for one in vars(sys.modules[module]).values() if inspect.isfunction(one))
    return [one for one in functions if list(inspect.signature(one).parameters) == ["case"]]


def make_checks(label: str, rules: Iterable[Rule[C]], case: C) -> list[Check]:
    """Make the checks of rules for one case."""
    return [Check(_name(rule), label, partial(_run, label, rule, case), _text(rule)) for rule in rules]


def skipped(label: str, name: str, reason: str) -> Check:
    """Return a check that is skipped and says what the missing checks need."""

    def skip() -> None:
        raise unittest.SkipTest(f"{label}: {reason}")

    return Check(name, label, skip, "Other checks could be made.")


def _name(rule: Callable[..., None]) -> str:
    return rule.__name__.strip("_").replace("_", "-")


def _text(rule: Callable[..., None]) -> str:
    """Return the first paragraph of a rule's docstring, on one line."""
    return " ".join((rule.__doc__ or "").split("\n\n")[0].split())


def _run(label: str, rule: Rule[C], case: C) -> None:
    text = _text(rule)
    try:
        rule(case)
    except ConformanceError as problem:
        raise ConformanceError(f"{label}:{_name(rule)}: {problem} (The rule: {text})") from None
    except unittest.SkipTest:
        raise
    except Exception as problem:  # a plugin may raise anything; the traceback stays attached
        last = traceback.extract_tb(problem.__traceback__)[-1]
        raise ConformanceError(
            f"{label}:{_name(rule)}: expected no exception; found {type(problem).__name__}: {problem}. "
            f"It was raised in {Path(last.filename).name}, line {last.lineno}. (The rule: {text})"
        ) from problem
