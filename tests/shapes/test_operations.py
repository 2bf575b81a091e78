"""The declared operations: each has its route, its method of the SDK and a name of its own."""

from __future__ import annotations

from collections import Counter

import pytest
from msgspec import NODEFAULT

from redkey.api.surface import routes
from redkey.client import RedKey
from redkey.shapes.fields import Body
from redkey.shapes.operation import READ, Operation
from redkey.shapes.operations import operations
from redkey.shapes.signature import parameters

DECLARED = {operation.name: operation for operation in operations()}


class Letter(Body, frozen=True, kw_only=True):
    """A body whose first parameter has a default."""

    to: str | None = None
    subject: str
    queue_id: str = ""
    idempotency_key: str = ""


def test_names_methods_and_commands_are_used_once() -> None:
    for name in ("name", "method_name", "command"):
        used = Counter(getattr(operation, name) for operation in operations())
        assert [one for one, count in used.items() if one and count > 1] == [], name


def test_every_operation_has_its_route() -> None:
    served = Counter(route.operation for route in routes())
    assert [name for name, operation in DECLARED.items() if served[operation] != 1] == []


@pytest.mark.parametrize("name", [name for name, one in DECLARED.items() if one.method_name])
def test_every_method_is_there(name: str) -> None:
    family, _, method = DECLARED[name].method_name.partition(".")
    with RedKey("http://127.0.0.1:1", "rk_a_b") as rk:
        assert callable(getattr(getattr(rk, family), method))


def test_parameters_have_the_names_of_python_and_the_order_of_a_call() -> None:
    operation = Operation(
        *("write", "POST", "/roles/{role_id}/letters", READ), body=Letter, positional=("to", "subject")
    )
    found = parameters(operation)
    assert [(one.name, one.wire, one.place) for one in found] == [
        ("role", "role_id", "path"),
        ("to", "to", "body"),
        ("subject", "subject", "body"),
        ("queue", "queueId", "body"),
    ]
    # `to` comes before a required parameter.
    assert [one.default for one in found] == [NODEFAULT, NODEFAULT, NODEFAULT, ""]
