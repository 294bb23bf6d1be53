"""What a function of an offer returns is checked where it is called, and named."""

from __future__ import annotations

import pytest

from clocs_core.contracts.offers import Loss, Needs, ViewGenerator
from clocs_core.contracts.returned import function_returned, returned
from clocs_core.errors import PluginError

LOSS = Loss(name="mine", summary="A loss.", build=lambda options: None)
VIEWS = ViewGenerator(name="mine", summary="Views.", needs=lambda options: None, build=lambda options: None)


def test_what_is_promised_is_returned():
    needs = Needs(segments=2)
    assert returned(needs, Needs, VIEWS, "needs") is needs
    assert function_returned(len, LOSS, "build") is len


def test_something_else_is_named_with_its_offer_and_function():
    with pytest.raises(PluginError, match=r"`needs` of the views 'mine' must return a Needs, got None\. Its plugin"):
        returned(None, Needs, VIEWS, "needs")
    with pytest.raises(PluginError, match=r"`build` of the loss 'mine' must return a function, got 3\. "):
        function_returned(3, LOSS, "build")
