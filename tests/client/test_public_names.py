"""What users import: these names, and nothing heavy with them."""

from __future__ import annotations

import inspect
import subprocess
import sys

import redkey.client
from redkey.client import AsyncRedKey, RedKey
from redkey.errors import ApiError, ClientError, RedKeyError

NAMES = [
    "AlreadyTerminal",
    "ApiError",
    "ApprovalGate",
    "Assignment",
    "AsyncContext",
    "AsyncRedKey",
    "Block",
    "CallMisused",
    "ClaimNext",
    "ClaimNextOutcome",
    "ClaimOutcome",
    "Claimed",
    "ClientError",
    "Conflict",
    "Context",
    "CreditsExhausted",
    "Done",
    "Event",
    "Fail",
    "Forbidden",
    "Hold",
    "Invalid",
    "LeaseLost",
    "Missed",
    "NewTask",
    "NoTasks",
    "NotFound",
    "Page",
    "PendingTask",
    "RateLimited",
    "Receipt",
    "RedKey",
    "RedKeyError",
    "Rejected",
    "Release",
    "ReplyRefused",
    "Retry",
    "ServerFailed",
    "Tally",
    "Task",
    "TimedOut",
    "Unauthorized",
    "Unreachable",
    "WorkFailed",
    "WorkInterrupted",
]
RESOURCES = [
    "agents",
    "billing",
    "checkpoints",
    "claims",
    "content",
    "definitions",
    "events",
    "gates",
    "inbox",
    "keys",
    "ledger",
    "oauth",
    "people",
    "queues",
    "receipts",
    "roles",
    "server",
    "signup",
    "tasks",
    "usage",
    "webhooks",
    "workflows",
    "workspaces",
]


def run(code: str) -> str:
    """The output of a fresh interpreter."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_public_names_are_these() -> None:
    assert sorted(redkey.client.__all__) == NAMES
    assert all(hasattr(redkey.client, name) for name in NAMES)


def test_both_clients_have_the_same_families_and_the_same_words() -> None:
    with RedKey("http://127.0.0.1:1", "rk_a_b") as rk:
        assert sorted(name for name in vars(rk) if name in RESOURCES) == RESOURCES
        shared = {name for name in dir(RedKey) if not name.startswith("_")}
        assert shared == {name for name in dir(AsyncRedKey) if not name.startswith("_")}
        for name in RESOURCES:
            assert type(getattr(rk, name)).__doc__, name


def test_the_table_of_contents_names_every_family_and_method() -> None:
    described = inspect.getdoc(redkey.client) or ""
    with RedKey("http://127.0.0.1:1", "rk_a_b") as rk:
        for name in RESOURCES:
            assert f" {name} " in described.replace("\n", " ") + " ", name
            for method in (one for one in dir(getattr(rk, name)) if not one.startswith("_")):
                assert method in described, f"{name}.{method}"


def test_methods_can_be_asked_for_help() -> None:
    with RedKey("http://127.0.0.1:1", "rk_a_b") as rk:
        assert rk.tasks.claim.__doc__
        assert "exactly one agent wins" in rk.tasks.claim.__doc__
        assert rk.tasks.claim.__name__ == "claim"
        assert "lease_seconds" in inspect.signature(rk.tasks.claim).parameters


def test_to_import_the_sdk_loads_no_http_library_and_no_event_loop() -> None:
    heavy = "{'httpx2', 'asyncio', 'ssl', 'starlette', 'uvicorn', 'cryptography', 'rich'}"
    assert run(f"import sys, redkey.client; print(sorted({heavy} & set(sys.modules)))") == "[]"
    # Nor does a plain call, answered or not.
    asked = "redkey.client.RedKey('http://127.0.0.1:1', 'rk_a_b', max_retries=0).server.health()"
    told = f"print(sorted({heavy} & set(sys.modules)))"
    code = f"import sys, redkey.client\ntry: {asked}\nexcept redkey.client.Unreachable: {told}"
    assert run(code) == "[]"


def test_the_sdk_loads_nothing_of_the_server() -> None:
    code = "import sys, redkey.client, redkey.client.worker.crew, redkey.client.async_connection; print(*sys.modules)"
    loaded = {name for name in run(code).split() if name.startswith("redkey.")}
    allowed = ("redkey.client", "redkey.errors", "redkey.config", "redkey.discovery", "redkey.shapes", "redkey.wire")
    assert {name for name in loaded if not name.startswith(allowed)} == set()


def test_every_error_of_the_sdk_is_in_the_tree() -> None:
    for name in NAMES:
        found = getattr(redkey.client, name)
        if isinstance(found, type) and issubclass(found, RedKeyError) and found is not RedKeyError:
            assert issubclass(found, ClientError), name
            assert found.__doc__
    assert issubclass(redkey.client.LeaseLost, redkey.client.Conflict)
    assert issubclass(redkey.client.Conflict, ApiError)
