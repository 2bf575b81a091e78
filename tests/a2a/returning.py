"""A server that is killed and started again on its port, and a caller that goes on over that.

A test that fails shows the log of each start.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2

from tests.harness.patience import MOST_SECONDS
from tests.harness.ports import lasting_port
from tests.harness.server import Server, begin


class Servers:
    """The servers of one data directory, one after another."""

    def __init__(self, directory: Path, config: str) -> None:
        self._directory, self._config, self._port = directory, config, str(lasting_port())
        self._started: list[Server] = []
        self.start()

    @property
    def last(self) -> Server:
        """The server that was started last."""
        return self._started[-1]

    def start(self) -> None:
        """Start a server, with a log of its own."""
        name = f"server-{len(self._started)}"
        self._started.append(begin(self._directory, "--port", self._port, config=self._config, name=name))

    def kill(self) -> None:
        """Kill the last server, as `kill -9` does."""
        self.last.process.kill()
        self.last.process.wait()

    def logs(self) -> str:
        """The logs of all starts, also of one that failed."""
        files = sorted(self._directory.glob("server-*.log"))
        return "\n".join(f"{file.name}:\n{file.read_text()}" for file in files)


@contextmanager
def returning(directory: Path, *, config: str = "") -> Iterator[Servers]:
    """A server that a test may kill and start again."""
    servers = Servers(directory, config)
    try:
        yield servers
    except BaseException as error:
        error.add_note(servers.logs())
        raise
    finally:
        servers.kill()


class Ended(Exception):
    """The test is over; what still runs ends."""


class Caller:
    """Calls a server that may be away for a while: each act has a key of its own, and is sent until it is answered."""

    def __init__(self, url: str, key: str) -> None:
        headers = {"authorization": f"Bearer {key}", "a2a-version": "1.0"}
        # One for all calls: creating one takes longer than most calls do.
        self._http = httpx2.Client(base_url=url, headers=headers, timeout=MOST_SECONDS, trust_env=False)
        # Set while a server is there, or is about to die.
        self.up = threading.Event()
        self.ended = False
        self.up.set()

    def end(self) -> None:
        """Let every call that is still tried end."""
        self.ended = True
        self.up.set()

    def close(self) -> None:
        """Close the connections, when no call is made any more."""
        self._http.close()

    def post(self, path: str, body: dict[str, Any], key: str = "") -> dict[str, Any]:
        headers = {"idempotency-key": key or uuid4().hex}
        while True:
            self.up.wait()
            if self.ended:
                raise Ended
            try:
                reply = self._http.post(path, json=body, headers=headers)
                if reply.status_code != 503:
                    assert reply.status_code in (200, 201), f"{path}: {reply.status_code} {reply.text}"
                    found: dict[str, Any] = reply.json()
                    return found
            except httpx2.TransportError:
                pass
            time.sleep(0.02)

    def stream(self, task_id: str, after: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """The events of a subscription, each with its id, until it breaks or ends."""
        headers = {"last-event-id": after} if after else {}
        self.up.wait()
        with self._http.stream("POST", f"/a2a/tasks/{task_id}:subscribe", headers=headers) as reply:
            if reply.status_code != 200:
                return
            position = ""
            for line in reply.iter_lines():
                if line.startswith("id: "):
                    position = line[4:]
                elif line.startswith("data: "):
                    yield position, json.loads(line[6:])
