"""Rules for every kind of offer: it can be sent to worker processes, and its options can be typed and saved."""

from __future__ import annotations

import pickle
from typing import Any

import attrs

from clocs_core.contracts.offers import Offer
from clocs_core.settings.options import help_of, plain, structure
from clocs_core.testing.checks import Check, expect, label_of, make_checks

LONGEST_SUMMARY = 120  # characters: a line of `clocs plugins`


def checks_of_every_offer(offer: Offer) -> list[Check]:
    """Return the checks that apply to every kind of offer."""
    rules = (_summary, _pickle, _options_default, _options_frozen, _options_help, _options_file, _options_pickle)
    return make_checks(label_of(offer), rules, offer)


def _summary(offer: Offer) -> None:
    """The summary is one line of at most 120 characters, without leading or trailing spaces."""
    tidy = "\n" not in offer.summary and offer.summary == offer.summary.strip()
    expect(
        tidy and 0 < len(offer.summary) <= LONGEST_SUMMARY,
        f"one line of at most {LONGEST_SUMMARY} characters, with no space before or after",
        f"{len(offer.summary)} characters, {offer.summary!r}",
        "Say it shorter; the rest belongs in the documentation.",
    )


def _pickle(offer: Offer) -> None:
    """An offer can be pickled; the unpickled copy is equal."""
    try:
        copy = pickle.loads(pickle.dumps(offer))
    except Exception as problem:  # pickling a plugin's object may raise anything
        expect(
            False,
            "an offer that pickle can send to a worker process",
            f"{type(problem).__name__}: {problem}",
            "Use functions defined at the top of a module: no lambda, no function inside a function.",
        )
    else:
        expect(
            copy == offer,
            "an equal offer after pickling",
            f"{copy!r}",
            "Let its functions be module-level functions and its options an attrs class.",
        )


def _options_default(offer: Offer) -> None:
    """Every option has a default."""
    required = [field.name for field in attrs.fields(offer.options) if field.init and field.default is attrs.NOTHING]
    expect(
        not required,
        f"{offer.options.__name__}() to work without arguments",
        f"no default for {', '.join(required)}",
        "Declare every field with clocs_core.option(default, help).",
    )
    offer.options()


def _options_frozen(offer: Offer) -> None:
    """The options class is frozen."""
    options = _options(offer)
    fields = attrs.fields(offer.options)
    name = fields[0].name if fields else "anything"
    try:
        setattr(options, name, getattr(options, name, None))
    except attrs.exceptions.FrozenError:
        return
    expect(False, "a frozen class", f"{name} of {offer.options.__name__} can be set", "Decorate it with @attrs.frozen.")


def _options_help(offer: Offer) -> None:
    """Every option has a help text of one line."""
    bad = [field.name for field in attrs.fields(offer.options) if not help_of(field).strip() or "\n" in help_of(field)]
    expect(
        not bad,
        "one line of help for every option",
        f"none, or more than a line, for {', '.join(bad)}",
        "Declare every field with clocs_core.option(default, help).",
    )


def _options_file(offer: Offer) -> None:
    """Options written to a settings file and read again are equal."""
    options = _options(offer)
    values = plain(options)
    allowed = (str, int, float, bool, list)
    odd = [name for name, value in values.items() if not isinstance(value, allowed)]
    expect(
        not odd,
        "options that a TOML file can hold (text, numbers, true or false, tuples of these, None)",
        ", ".join(f"{name}={values[name]!r}" for name in odd),
        "Give these fields another type.",
    )
    again = structure(offer.options, values, offer.name)
    expect(
        again == options,
        f"{options!r} after writing and reading",
        f"{again!r}",
        "Annotate every field with the type of its default; no converter should change a value twice.",
    )


def _options_pickle(offer: Offer) -> None:
    """Options can be pickled with the offer."""
    options = _options(offer)
    copy = pickle.loads(pickle.dumps(options))
    expect(
        copy == options, f"{options!r} after pickling", f"{copy!r}", "Define the options class at the top of a module."
    )


def _options(offer: Offer) -> Any:
    """Return default options, with "none" for an option without default, which another rule reports."""
    required = [f.alias for f in attrs.fields(offer.options) if f.init and f.default is attrs.NOTHING]
    return offer.options(**dict.fromkeys(required, "none"))
