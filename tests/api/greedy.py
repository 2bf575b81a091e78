"""A greedy caller in its own process: it always has four large requests of one key in progress.

`python -m tests.api.greedy URL KEY KINDS` says `ready` when it could begin, begins with the first line of its standard
input, and goes on until the input ends; then it prints how often each kind was answered how.
"""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

QUEUE = "queue_greedy"
OBJECT: dict[str, Any] = {"title": "An object of 80,000 keys", "input": {f"{index:x}": 0 for index in range(80_000)}}
BATCH: dict[str, Any] = {"tasks": [{"title": f"Task {index}", "input": {"index": index}} for index in range(500)]}
PLAN: dict[str, Any] = {
    "version": "1.0",
    "name": "large",
    "roles": {"worker": {"description": "Works."}},
    "tasks": [
        {
            "id": f"t{index}",
            "title": f"Task {index}",
            "role": "worker",
            "dependsOn": [f"t{index - 1}"] if index % 10 else [],
            "outputs": [f"output{index}"],
            "completionCriteria": ["It is done"],
        }
        for index in range(1000)
    ],
    "policies": {"maxParallelTasks": 50, "retry": {"maxAttempts": 2, "onFailure": "reopen"}},
}
REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "object": (f"/queues/{QUEUE}/tasks", OBJECT),
    "batch": (f"/queues/{QUEUE}/tasks/batch", BATCH),
    "plan": ("/workflows", {"queueId": QUEUE, "plan": PLAN}),
}


class Greedy:
    """Run four connections that send requests without pause."""

    def __init__(self, url: str, key: str, kinds: list[str]) -> None:
        place = urlsplit(url)
        self._host, self._port = str(place.hostname), int(place.port or 80)
        self._headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        self._kinds, self._over, self.answers = kinds, threading.Event(), Counter[str]()

    def run(self) -> None:
        self._send(self._connection(), "/queues", json.dumps({"id": QUEUE, "name": "greedy"}).encode())
        bodies = [json.dumps(REQUESTS[kind][1], separators=(",", ":")).encode() for kind in self._kinds]
        asked = zip(self._kinds, bodies, strict=True)
        threads = [threading.Thread(target=self._ask, args=(kind, data)) for kind, data in asked]
        print("ready", flush=True)
        sys.stdin.readline()
        for thread in threads:
            thread.start()
        sys.stdin.read()
        self._over.set()
        for thread in threads:
            thread.join()
        print(json.dumps(self.answers), flush=True)

    def _connection(self) -> HTTPConnection:
        return HTTPConnection(self._host, self._port, timeout=60)

    def _ask(self, kind: str, data: bytes) -> None:
        path, connection = REQUESTS[kind][0], self._connection()
        while not self._over.is_set():
            status, retry_after = self._send(connection, path, data)
            self.answers[f"{kind} {status}"] += 1
            if status == 429:
                # As soon as it may, and not a moment later.
                self._over.wait(min(retry_after, 0.1))
        connection.close()

    def _send(self, connection: HTTPConnection, path: str, data: bytes) -> tuple[int, float]:
        connection.request("POST", path, data, self._headers)
        reply = connection.getresponse()
        reply.read()
        return reply.status, float(reply.headers.get("retry-after", 0))


if __name__ == "__main__":
    Greedy(sys.argv[1], sys.argv[2], sys.argv[3].split(",")).run()
