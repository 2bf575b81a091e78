"""Prefect: the graph as one flow of submitted no-op tasks, on its own temporary server with SQLite."""

from __future__ import annotations

import json
import os
import sys
import time

ASKED = json.loads(sys.argv[1])
os.environ.update(
    PREFECT_HOME=ASKED["folder"],
    PREFECT_LOGGING_LEVEL="CRITICAL",
    PREFECT_SERVER_ALLOW_EPHEMERAL_MODE="true",
    PREFECT_SERVER_ANALYTICS_ENABLED="false",
    PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS="90",
)

from prefect import flow, task  # noqa: E402 - its settings are read when it is imported
from prefect.futures import wait  # noqa: E402


@task
def noop() -> None:
    """The empty task."""


@flow
def graph(levels: int, width: int) -> None:
    """Submit each level when the one before is done: with every edge listed, two minutes were not enough."""
    for _ in range(levels):
        wait([noop.submit() for _ in range(width)])


def main() -> None:
    """Run the measurement and print its result."""
    graph(1, 1)
    begun = time.perf_counter()
    graph(ASKED["levels"], ASKED["width"])
    print(json.dumps({"seconds": time.perf_counter() - begun}), flush=True)


if __name__ == "__main__":
    main()
