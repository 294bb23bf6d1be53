"""The processes that losses and objectives see are those that core gives them."""

from __future__ import annotations

import inspect

from clocs_core.contracts.ranks import Ranks
from clocs_core.train.ranks import Part


def test_core_gives_every_promised_name_with_its_arguments() -> None:
    for name, promised in vars(Ranks).items():
        if name.startswith("_"):
            continue
        given = getattr(Part, name, None)
        assert given is not None or name in Part.__annotations__, name
        if inspect.isfunction(promised):
            assert str(inspect.signature(promised)) == str(inspect.signature(given)), name
