"""Operations: the requests that RedKey serves, each declared once.

The HTTP route, its entry in the OpenAPI document, the method of the SDK and, with `command`, a command of the command
line follow from a declaration. The use case of an operation (`redkey.services.use_case`) does the work and takes its
scopes from here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar

import msgspec

from redkey.shapes.fields import Extended

Function = TypeVar("Function", bound=Callable[..., Any])

# Who may call: any one of these scopes is enough, and admin keys may do everything in their workspace.
READ = ("read", "produce", "agent", "runner")
PRODUCE = ("produce",)
AGENT = ("agent", "runner")
ADMIN = ("admin",)
OPERATOR = ("operator",)
PUBLIC = ()


class Operation(msgspec.Struct, frozen=True, eq=False):
    """One operation. `body`, `query` and `reply` are shapes.

    A use case gets the parameters of the path in their order, then the body, then the query, as far as they exist. A
    request that writes may carry an Idempotency-Key, unless `idempotent` is False.
    """

    # Its name everywhere: the name of the use case and, in camelCase, the operationId of OpenAPI.
    name: str
    method: str
    path: str
    scopes: tuple[str, ...] = PUBLIC
    # True if it may be called without a key; the use case decides what to show then.
    shared: bool = False
    body: Any = None
    query: Any = None
    reply: Any = None
    status: int = 200
    summary: str = ""
    # A longer text than the summary, if more needs to be said.
    description: str = ""
    # Statuses beyond those that follow from the declaration: status -> when it is returned.
    replies: Mapping[int, str] = {}
    idempotent: bool = True
    # False if a duplicate call does no harm: the SDK sends no key, so the server need not store the reply.
    sends_key: bool = True
    # How a request that is repeated under its key gets the same bytes. "records": the reply is computed again from what
    # it recorded, or stored if it recorded nothing; "parts": the same for a batch, whose parts have keys of their own;
    # "bytes": the reply is stored as it was sent, because it shows the state at that moment.
    repeats: Literal["records", "parts", "bytes"] = "records"
    # The name of the limit in `config.Limits` that bounds the body.
    body_limit: str = "body_bytes"
    # True if the body may be any JSON: the use case gets it as it is and validates it itself.
    loose: bool = False
    # True if the body is read in chunks, however large it is.
    streamed: bool = False
    media: tuple[str, ...] = ("application/json",)
    # The type of one event, if the reply is a stream of server-sent events.
    event: Any = None
    consumes: str = "application/json"
    # The type of errors that are not problems (RFC 9457).
    failure: Any = None
    # True if every error has the type `failure`, not only errors of the body or the key.
    fails_alike: bool = False
    # JSON examples for the documentation; tests check them against the schemas.
    example: Any = None
    reply_example: Any = None
    # The SDK method as `family.method`; empty if the SDK has a method written by hand, or none.
    method_name: str = ""
    # The fields of the body or query that the SDK method takes by position, after those of the path.
    positional: tuple[str, ...] = ()
    # The command of the command line that is generated from this declaration: its words, then the parameters that are
    # arguments, as in `role grant ROLE AGENT`; every other parameter is an option.
    command: str = ""

    @property
    def family(self) -> str:
        """The first word of the path, which groups the documentation."""
        return self.path.split("/")[1] or "redkey"

    @property
    def allowed_scopes(self) -> frozenset[str]:
        """The scopes of which one is enough; an admin key may do everything in its workspace, not the server's."""
        return frozenset(self.scopes) if self.scopes == OPERATOR else frozenset((*self.scopes, *ADMIN))

    @property
    def path_names(self) -> tuple[str, ...]:
        """The parameters of the path, in their order."""
        return tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))

    @property
    def takes_body(self) -> bool:
        """Whether the use case gets the body; a body with only extensions is handled by the adapter."""
        return self.body not in (None, Extended)

    @property
    def purpose(self) -> str:
        """What the operation does: the longer of its two texts."""
        return max(self.description, self.summary, key=len)

    @property
    def writes(self) -> bool:
        return self.method in ("POST", "PUT", "PATCH", "DELETE")

    @property
    def takes_key(self) -> bool:
        """Whether the operation accepts an Idempotency-Key; a streamed body is identified by its hash."""
        return self.writes and self.idempotent and not self.streamed


# Use cases that are defined beside their declarations.
ANSWERS: dict[Operation, Callable[..., Any]] = {}


def answers(operation: Operation) -> Callable[[Function], Function]:
    """Define the use case of an operation beside its declaration, if it needs nothing but the caller and parameters.

    It is called like any use case (`redkey.services.use_case`): the caller first, then path, body, query.
    """

    def declare(run: Function) -> Function:
        ANSWERS[operation] = run
        return run

    return declare
