"""Find the paper's own number for a condition of a grid."""

from __future__ import annotations

from clocs_core import Condition, Published

PAPERS_RULE = ("keep=loss",)
"""The options of BYOL that keep the epoch of the lowest validation loss, as the paper does for all methods."""


def find_printed(one: Condition) -> Published | None:
    """Find the score that the paper printed; None where it has none.

    BYOL keeps an epoch by another rule than the paper's; the paper's number stands beside the paper's rule.
    """
    if one.exposure or one.options != (PAPERS_RULE if one.method == "byol" else ()):
        return None
    return _find(one, None)


def find_decay(one: Condition) -> Published | None:
    """Find the score of BYOL in the tables that vary its decay tau_d. Without an option, the decay is 0.9."""
    if one.method != "byol":
        return find_printed(one) if one.method == "random" else None
    if one.exposure or not set(PAPERS_RULE) <= set(one.options):
        return None
    decay = dict(option.split("=", 1) for option in one.options).get("decay", "0.9")
    return _find(one, float(decay))


def _find(one: Condition, tau_d: float | None) -> Published | None:
    from clocs_plugins.paper_tables.printed import PaperCondition, load_results

    if not one.leads.isdecimal() or one.part != "test":
        return None
    asked = PaperCondition(
        protocol=one.protocol,
        method=one.method,
        pretraining=one.printed_pretraining,
        downstream=one.printed_downstream,
        leads=int(one.leads),
        embedding_dim=one.embedding_dim,
        label_fraction=one.label_fraction,
        tau_d=tau_d,
    )
    found = load_results().find(asked)
    return None if found is None else Published(found.mean, found.sd, found.printed)
