"""The gateway as the official SDK's request handler: for gRPC, and for clients of version 0.3.

The SDK provides transports, types and the translation of 0.3; the gateway runs every operation.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from typing import Any, TypeVar

from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.types import a2a_pb2
from a2a.utils import errors as sdk
from google.protobuf.json_format import MessageToDict, ParseDict

from redkey.a2a import face, push_configs, requests
from redkey.a2a.call import Call, Event
from redkey.a2a.errors import A2aError, translated
from redkey.a2a.gateway import Gateway

T = TypeVar("T")
# The key in the SDK's context under which a transport stores the Call.
CALL = "redkey.call"


class TransportError(sdk.A2AError):
    """An error that A2A does not define, such as missing authentication or an overloaded server."""

    def __init__(self, failure: A2aError) -> None:
        super().__init__(failure.message, data={"code": failure.redkey_code})
        self.failure = failure


def sdk_error(error: BaseException) -> sdk.A2AError:
    """Return the error as an exception of the SDK."""
    failure = translated(error)
    kind = getattr(sdk, failure.kind.name, None)
    if kind is None:
        return TransportError(failure)
    data: dict[str, Any] = {"code": failure.redkey_code} if failure.redkey_code else {}
    if failure.violations:
        data["errors"] = [{"field": field, "message": text} for field, text in failure.violations]
    found: sdk.A2AError = kind(failure.message, data=data)
    return found


class LedgerHandler(RequestHandler):
    """Runs every operation of the SDK's interface with the gateway."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def on_message_send(self, params: Any, context: ServerCallContext) -> a2a_pb2.Task | a2a_pb2.Message:
        found = await _result(self._gateway.send(_call(context), _read(params, requests.SendMessage)))
        return _parsed(found["task"], a2a_pb2.Task)

    async def on_message_send_stream(self, params: Any, context: ServerCallContext) -> AsyncGenerator[Any, None]:
        async for found in _objects(context, self._gateway.stream(_call(context), _read(params, requests.SendMessage))):
            yield found

    async def on_get_task(self, params: Any, context: ServerCallContext) -> a2a_pb2.Task | None:
        found = await _result(self._gateway.get_task(_call(context), _read(params, requests.GetTask)))
        return _parsed(found, a2a_pb2.Task)

    async def on_list_tasks(self, params: Any, context: ServerCallContext) -> a2a_pb2.ListTasksResponse:
        found = await _result(self._gateway.list_tasks(_call(context), _read(params, requests.ListTasks)))
        return _parsed(found, a2a_pb2.ListTasksResponse)

    async def on_cancel_task(self, params: Any, context: ServerCallContext) -> a2a_pb2.Task | None:
        found = await _result(self._gateway.cancel_task(_call(context), _read(params, requests.NamedTask)))
        return _parsed(found, a2a_pb2.Task)

    async def on_subscribe_to_task(self, params: Any, context: ServerCallContext) -> AsyncGenerator[Any, None]:
        async for found in _objects(
            context, self._gateway.subscribe(_call(context), _read(params, requests.NamedTask))
        ):
            yield found

    async def on_create_task_push_notification_config(
        self, params: Any, context: ServerCallContext
    ) -> a2a_pb2.TaskPushNotificationConfig:
        found = await _result(push_configs.create_config(_call(context), _read(params, requests.PushConfig)))
        return _parsed(found, a2a_pb2.TaskPushNotificationConfig)

    async def on_get_task_push_notification_config(
        self, params: Any, context: ServerCallContext
    ) -> a2a_pb2.TaskPushNotificationConfig:
        found = await _result(push_configs.get_config(_call(context), _read(params, requests.NamedConfig)))
        return _parsed(found, a2a_pb2.TaskPushNotificationConfig)

    async def on_list_task_push_notification_configs(
        self, params: Any, context: ServerCallContext
    ) -> a2a_pb2.ListTaskPushNotificationConfigsResponse:
        found = await _result(push_configs.list_configs(_call(context), _read(params, requests.ListConfigs)))
        return _parsed(found, a2a_pb2.ListTaskPushNotificationConfigsResponse)

    async def on_delete_task_push_notification_config(self, params: Any, context: ServerCallContext) -> None:
        await _result(push_configs.delete_config(_call(context), _read(params, requests.NamedConfig)))

    async def on_get_extended_agent_card(self, params: Any, context: ServerCallContext) -> a2a_pb2.AgentCard:
        found = await _result(self._gateway.extended_card(_call(context), _read(params, requests.Nothing)))
        return _parsed(found, a2a_pb2.AgentCard)


def _parsed(found: Any, kind: type[T]) -> T:
    parsed: T = ParseDict(found, kind())
    return parsed


def _call(context: ServerCallContext) -> Call:
    call: Call = context.state[CALL]
    return call


def _read(params: Any, kind: type[Any]) -> Any:
    try:
        return face.converted(MessageToDict(params), kind)
    except A2aError as error:
        raise sdk_error(error) from error


async def _result(work: Awaitable[Any]) -> Any:
    try:
        return await work
    except Exception as error:
        raise sdk_error(error) from error


async def _objects(context: ServerCallContext, events: AsyncIterator[Event]) -> AsyncIterator[Any]:
    """Yield the objects of a stream as the SDK's types; over gRPC, metadata of an update has its position."""
    try:
        async for event in events:
            found = ParseDict(event.found, a2a_pb2.StreamResponse())
            yield getattr(found, found.WhichOneof("payload"))
    except Exception as error:
        raise sdk_error(error) from error
