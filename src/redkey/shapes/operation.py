"""Operations: what can be asked of RedKey, each declared once.

From a declaration follow the HTTP route, its entry in the OpenAPI document, the method of the SDK, and, where it says
`command`, the command of the command line. What is done when it is called is its use case
(`redkey.services.use_case`), which takes the scopes from here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar

import msgspec

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

    A use case gets the parameters of the path in their order, then the body, then the query, whichever there are.
    A request that writes may carry an Idempotency-Key, unless `idempotent` says otherwise.
    """

    # Its name everywhere: the use case's, and in camelCase the operationId of OpenAPI.
    name: str
    method: str
    path: str
    scopes: tuple[str, ...] = PUBLIC
    # True where it may be asked without a key too: the use case says what it shows then.
    shared: bool = False
    body: Any = None
    query: Any = None
    reply: Any = None
    status: int = 200
    summary: str = ""
    # More than the summary says, where there is more to say.
    description: str = ""
    # Statuses beyond those that follow from the declaration: status -> when it is given.
    replies: Mapping[int, str] = {}
    idempotent: bool = True
    # False where one call too many does no harm: the SDK sends no key, so the server need not keep the reply.
    sends_key: bool = True
    # How a request that is repeated under its key gets the same bytes. "records": told again from what it recorded, and
    # kept when it recorded nothing; "parts": the same for a batch, whose parts have keys of their own; "bytes": kept as
    # it was sent, because the reply shows the state of its moment.
    repeats: Literal["records", "parts", "bytes"] = "records"
    # The name of the limit in `config.Limits` that bounds the body.
    body_limit: str = "body_bytes"
    # True when any JSON is taken as the body: the use case gets it as it is, and judges it itself.
    loose: bool = False
    # True when the body is read chunk by chunk, however large it is.
    streamed: bool = False
    media: tuple[str, ...] = ("application/json",)
    # What one event of the reply is, where the reply is a stream of server-sent events.
    event: Any = None
    consumes: str = "application/json"
    # What errors look like where they are not problems.
    failure: Any = None
    # True when every error has the shape `failure`, not only those that the body or the key cause.
    fails_alike: bool = False
    # JSON shown in the documentation; tests hold them against the schemas.
    example: Any = None
    reply_example: Any = None
    # The method of the SDK: `family.method`; empty where the SDK has one written by hand, or none.
    method_name: str = ""
    # The fields of the body or the query that the SDK's method takes by position, after those of the path.
    positional: tuple[str, ...] = ()
    # The command of the command line that is made from this declaration: its words, then the parameters that are
    # arguments, as in `role grant ROLE AGENT`; every other parameter is an option.
    command: str = ""

    @property
    def family(self) -> str:
        """The first word of the path, which groups the documentation."""
        return self.path.split("/")[1] or "redkey"

    @property
    def allowed_scopes(self) -> frozenset[str]:
        """The scopes of which one is enough: admin keys may do everything in their workspace, and no server's."""
        return frozenset(self.scopes) if self.scopes == OPERATOR else frozenset((*self.scopes, *ADMIN))

    @property
    def path_names(self) -> tuple[str, ...]:
        """The parameters of the path, in their order."""
        return tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))

    @property
    def purpose(self) -> str:
        """What it does: the fuller of its two texts."""
        return max(self.description, self.summary, key=len)

    @property
    def writes(self) -> bool:
        return self.method in ("POST", "PUT", "PATCH", "DELETE")

    @property
    def takes_key(self) -> bool:
        """Whether an Idempotency-Key means something here; a streamed body is its own key."""
        return self.writes and self.idempotent and not self.streamed


# The use cases that stand beside their declarations.
ANSWERS: dict[Operation, Callable[..., Any]] = {}


def answers(operation: Operation) -> Callable[[Function], Function]:
    """Declare the use case of an operation beside it: for what needs nothing but the caller and what it is given.

    It is called like any use case (`redkey.services.use_case`): the caller first, then path, body, query.
    """

    def declare(run: Function) -> Function:
        ANSWERS[operation] = run
        return run

    return declare
