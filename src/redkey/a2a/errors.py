"""The errors of A2A, each with its JSON-RPC code, HTTP status, gRPC status and reason."""

from __future__ import annotations

from typing import Any

import msgspec

from redkey.commands.decision import Refused
from redkey.errors import JsonRefused, RedKeyError
from redkey.http import problems
from redkey.services.use_case import InsufficientScope

_DOMAIN = "a2a-protocol.org"
_ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"
_BAD_REQUEST = "type.googleapis.com/google.rpc.BadRequest"
# The JSON-RPC code of errors that A2A has no code for; the HTTP status and the reason tell them apart.
_SERVER_ERROR = -32000


class Kind(msgspec.Struct, frozen=True):
    """One kind of error on every transport; `name` is its class in the official SDK."""

    name: str
    rpc: int
    http: int
    grpc: str
    reason: str


_KINDS = {
    kind.name: kind
    for kind in (
        Kind("TaskNotFoundError", -32001, 404, "NOT_FOUND", "TASK_NOT_FOUND"),
        Kind("TaskNotCancelableError", -32002, 400, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE"),
        Kind(
            "PushNotificationNotSupportedError", -32003, 400, "FAILED_PRECONDITION", "PUSH_NOTIFICATION_NOT_SUPPORTED"
        ),
        Kind("UnsupportedOperationError", -32004, 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"),
        Kind("ContentTypeNotSupportedError", -32005, 400, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED"),
        Kind("InvalidAgentResponseError", -32006, 500, "INTERNAL", "INVALID_AGENT_RESPONSE"),
        Kind(
            "ExtendedAgentCardNotConfiguredError",
            -32007,
            400,
            "FAILED_PRECONDITION",
            "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
        ),
        Kind("ExtensionSupportRequiredError", -32008, 400, "FAILED_PRECONDITION", "EXTENSION_SUPPORT_REQUIRED"),
        Kind("VersionNotSupportedError", -32009, 400, "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED"),
        Kind("JSONParseError", -32700, 400, "INVALID_ARGUMENT", "INVALID_REQUEST"),
        Kind("InvalidRequestError", -32600, 400, "INVALID_ARGUMENT", "INVALID_REQUEST"),
        Kind("MethodNotFoundError", -32601, 404, "NOT_FOUND", "METHOD_NOT_FOUND"),
        Kind("InvalidParamsError", -32602, 400, "INVALID_ARGUMENT", "INVALID_PARAMS"),
        Kind("InternalError", -32603, 500, "INTERNAL", "INTERNAL_ERROR"),
    )
}
_OF_STATUS = {
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    402: "FAILED_PRECONDITION",
    409: "FAILED_PRECONDITION",
    410: "FAILED_PRECONDITION",
    413: "INVALID_ARGUMENT",
    415: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}


class A2aError(RedKeyError):
    """An A2A request was refused; nothing was recorded."""

    code = "a2a_refused"

    def __init__(
        self,
        kind: Kind,
        message: str,
        *,
        redkey_code: str = "",
        violations: tuple[tuple[str, str], ...] = (),
        headers: tuple[tuple[bytes, bytes], ...] = (),
    ) -> None:
        super().__init__(message)
        self.kind, self.redkey_code, self.violations, self.headers = kind, redkey_code, violations, headers

    @property
    def details(self) -> list[dict[str, Any]]:
        """The details of the error (google.rpc types), the same on every transport."""
        metadata = {"code": self.redkey_code} if self.redkey_code else {}
        found: list[dict[str, Any]] = [
            {"@type": _ERROR_INFO, "reason": self.kind.reason, "domain": _DOMAIN, "metadata": metadata}
        ]
        if self.violations:
            fields = [{"field": field, "description": text} for field, text in self.violations]
            found.append({"@type": _BAD_REQUEST, "fieldViolations": fields})
        return found

    def as_rpc(self) -> dict[str, Any]:
        """Return the error object of JSON-RPC."""
        return {"code": self.kind.rpc, "message": self.message, "data": self.details}

    def as_rest(self) -> dict[str, Any]:
        """Return the error body of HTTP+JSON (AIP-193)."""
        kind = self.kind
        return {"error": {"code": kind.http, "status": kind.grpc, "message": self.message, "details": self.details}}

    def as_older_rest(self) -> dict[str, Any]:
        """Return the error body of HTTP+JSON 0.3: the newer form, plus the error's name, which its clients read."""
        return self.as_rest() | {"type": self.kind.name, "message": self.message}

    @property
    def is_transport(self) -> bool:
        """Whether JSON-RPC reports it by the HTTP status too: authentication, authority, overload and the like."""
        return self.kind.rpc == _SERVER_ERROR


def refused(name: str, message: str, *violations: tuple[str, str]) -> A2aError:
    """Build an A2A error by its name; `violations` are pairs of a field and its problem."""
    return A2aError(_KINDS[name], message, violations=violations)


def invalid(message: str, field: str, problem: str) -> A2aError:
    """Build an InvalidParams error for one field."""
    return refused("InvalidParamsError", message, (field, problem))


def translated(error: BaseException, *, cancels: bool = False) -> A2aError:
    """Translate any error into an A2A error; unexpected exceptions become InternalError."""
    if isinstance(error, A2aError):
        return error
    if isinstance(error, JsonRefused):
        name = "InvalidRequestError" if error.code == "json_too_large" else "JSONParseError"
        return A2aError(_KINDS[name], error.message, redkey_code=error.code)
    answer = problems.answer(error)
    headers = tuple(answer.headers)
    if not isinstance(error, Refused):
        if answer.status == 500:
            return A2aError(_KINDS["InternalError"], "The server made a mistake.")
        return _other(answer.status, str(error), getattr(error, "code", ""), headers)
    status, code = error.status, error.code
    violations = tuple((one.pointer, one.message) for one in error.findings()) if status == 422 else ()
    name = ""
    if status == 404:
        name = "TaskNotFoundError" if code == "task_not_found" else "InvalidParamsError"
    elif status == 422:
        name = "InvalidParamsError"
    elif status == 413:
        name = "InvalidRequestError"
    elif status == 415:
        name = "ContentTypeNotSupportedError"
    elif status == 409:
        name = "TaskNotCancelableError" if cancels else "UnsupportedOperationError"
    if name:
        return A2aError(_KINDS[name], error.message, redkey_code=code, violations=violations, headers=headers)
    if isinstance(error, InsufficientScope):
        code = "insufficient_scope"
    return _other(status, error.message, code, headers)


def _other(status: int, message: str, code: str, headers: tuple[tuple[bytes, bytes], ...]) -> A2aError:
    kind = Kind("", _SERVER_ERROR, status, _OF_STATUS.get(status, "UNKNOWN"), code.upper() or "UNKNOWN")
    return A2aError(kind, message, redkey_code=code, headers=headers)
