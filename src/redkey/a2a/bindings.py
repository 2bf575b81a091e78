"""The table of A2A operations: JSON-RPC method, HTTP+JSON path, type of the parameters, and the function that runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from redkey.a2a import push_configs, requests
from redkey.a2a.gateway import Gateway

_TASK = r"/tasks/(?P<id>[^/:]+)"

_CONFIGS = r"/tasks/(?P<taskId>[^/:]+)/pushNotificationConfigs"
_CONFIG = _CONFIGS + r"/(?P<id>[^/]+)"


class Binding(msgspec.Struct, frozen=True):
    """One operation on both HTTP bindings; `run` returns its result, or yields the events of its stream."""

    name: str
    method: str
    path: re.Pattern[str]
    kind: type[Any]
    run: Callable[..., Any]
    streams: bool = False


def bindings(gateway: Gateway) -> tuple[Binding, ...]:
    """List all operations; an operation with two HTTP paths has two rows."""
    send, named = requests.SendMessage, requests.NamedTask
    return (
        _bind("SendMessage", "POST", "/message:send", send, gateway.send),
        _bind("SendStreamingMessage", "POST", "/message:stream", send, gateway.stream, streams=True),
        _bind("GetExtendedAgentCard", "GET", "/extendedAgentCard", requests.Nothing, gateway.extended_card),
        _bind("ListTasks", "GET", "/tasks", requests.ListTasks, gateway.list_tasks),
        _bind("GetTask", "GET", _TASK, requests.GetTask, gateway.get_task),
        _bind("CancelTask", "POST", _TASK + ":cancel", named, gateway.cancel_task),
        _bind("SubscribeToTask", "POST", _TASK + ":subscribe", named, gateway.subscribe, streams=True),
        _bind("CreateTaskPushNotificationConfig", "POST", _CONFIGS, requests.PushConfig, push_configs.create_config),
        _bind("ListTaskPushNotificationConfigs", "GET", _CONFIGS, requests.ListConfigs, push_configs.list_configs),
        _bind("GetTaskPushNotificationConfig", "GET", _CONFIG, requests.NamedConfig, push_configs.get_config),
        _bind("DeleteTaskPushNotificationConfig", "DELETE", _CONFIG, requests.NamedConfig, push_configs.delete_config),
        _bind("SubscribeToTask", "GET", _TASK + ":subscribe", named, gateway.subscribe, streams=True),
    )


def _bind(
    name: str, method: str, path: str, kind: type[Any], run: Callable[..., Any], *, streams: bool = False
) -> Binding:
    return Binding(name, method, re.compile(path), kind, run, streams)
