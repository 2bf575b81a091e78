"""Two organisations on one stand-in network, each with an account and a `redkey serve` process of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import httpx2

from redkey.cli.standin_settings import write_settings
from redkey.client import RedKey
from redkey.hedera.standin.server import StandIn
from tests.harness.server import PATIENCE_SECONDS, Server, serving

# Tests send more in an hour than a default budget allows.
BUDGETS = "budget_usd_per_hour = 1000\nbudget_usd_per_day = 1000\n"


class Organisation:
    """One organisation: its server, its account on the network, and callers with its keys."""

    def __init__(self, server: Server, config: str) -> None:
        self.server, self.config = server, config
        self.account = next(line.split('"')[1] for line in config.splitlines() if line.startswith("operator"))
        headers = {"authorization": f"Bearer {server.key}"}
        self.operator = httpx2.Client(base_url=server.url, headers=headers, timeout=PATIENCE_SECONDS)
        # An admin of the shared workspace, by the SDK.
        self.admin = RedKey(server.url, server.key)

    def close(self) -> None:
        """Close the connections."""
        self.operator.close()
        self.admin.close()

    def enter(self, key: str) -> None:
        """Act as an admin of the shared workspace, with this key."""
        self.admin.close()
        self.admin = RedKey(self.server.url, key, timeout=PATIENCE_SECONDS)

    def join(self, workspace_id: str) -> None:
        """Make an admin key of the shared workspace at this server."""
        body = {"scopes": ["admin"]}
        self.enter(said(self.operator.post(f"/workspaces/{workspace_id}/api-keys", json=body), 201)["apiKey"])

    def ledger(self, workspace_id: str) -> dict[str, Any]:
        """The ledger of a workspace as its server has it."""
        return said(self.operator.get(f"/workspaces/{workspace_id}/ledger"))

    def spent(self, workspace_id: str) -> tuple[int, float]:
        """How many tinybars its server has booked, and what is still reserved."""
        found = self.ledger(workspace_id)["spending"]
        return found["tinybars"], found["reservedUsd"]


def said(response: httpx2.Response, status: int = 200) -> dict[str, Any]:
    """The reply, which has this status."""
    assert response.status_code == status, response.text
    found: dict[str, Any] = response.json()
    return found


def until(holds: Callable[[], Any]) -> Any:
    """Wait for a condition, a minute at most."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (found := holds()):
        assert time.monotonic() < deadline, "it did not happen within a minute"
        time.sleep(0.05)
    return found


def settings_of(standin: StandIn, directory: Path, more: str = "") -> str:
    """The table [hedera] of a new account on the network, without a topic for checkpoints."""
    directory.mkdir(exist_ok=True)
    write_settings(standin, directory / "hedera.toml")
    lines = (directory / "hedera.toml").read_text().splitlines()
    return "\n".join([line for line in lines if not line.startswith("topic")]) + f"\n{BUDGETS}{more}"


@contextmanager
def organisations(standin: StandIn, directory: Path, *names: str) -> Iterator[tuple[Organisation, ...]]:
    """The servers of some organisations."""
    with ExitStack() as stack:
        found = []
        for name in names:
            config = settings_of(standin, directory / name)
            server = stack.enter_context(serving(directory / name, config=config))
            found.append(stack.enter_context(closing(Organisation(server, config))))
        yield tuple(found)


@contextmanager
def again(one: Organisation, directory: Path, more: str) -> Iterator[Organisation]:
    """The server of an organisation once more, on the same data, with further settings."""
    config = one.config + more
    with serving(directory, config=config) as server, closing(Organisation(server, config)) as found:
        yield found


def share(ours: Organisation, theirs: Organisation) -> str:
    """Begin a workspace at one server and let the other follow and write to it; each has an admin key. Its id."""
    begun = said(ours.operator.post("/workspaces", json={"name": "Shared", "order": "network"}), 201)
    workspace_id = begun["workspaceId"]
    ours.enter(begun["apiKey"])
    ours.admin.queues.create("work")
    ledger = f"/workspaces/{workspace_id}/ledger"
    said(ours.operator.post(f"{ledger}/parties", json={"account": theirs.account}), 201)
    topic = ours.ledger(workspace_id)["topic"]
    followed = said(theirs.operator.put(ledger, json={"topic": topic}))
    assert (followed["status"], "apiKey" in followed) == ("followed", False)
    until(lambda: theirs.ledger(workspace_id)["parties"])
    theirs.join(workspace_id)
    return str(workspace_id)
