"""`make demo-hedera`: a simulated network, a server that anchors on it, and a receipt that is verified three ways."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

REDKEY = [sys.executable, "-m", "redkey"]
PATIENCE_SECONDS = 60.0


def redkey(*arguments: str) -> str:
    """Run a command and return what it prints; show the command."""
    print("$ redkey", *arguments, flush=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("REDKEY_")}
    found = subprocess.run([*REDKEY, *arguments], capture_output=True, text=True, check=True, env=environment)
    return found.stdout.strip()


def wait_for(condition: Callable[[], bool], what: str) -> None:
    """Wait up to a minute until a condition holds."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"{what} did not happen within a minute")
        time.sleep(0.1)


def show(folder: Path) -> None:
    """Create a task, wait for its anchor, and verify its receipt."""
    data, receipt = str(folder / "data"), folder / "receipt.json"
    redkey("task", "create", "--role", "writer", "--title", "Write the intro", "--data", data)
    event = redkey("events", "tail", "--type", "task.created", "-n", "1", "-q", "--data", data)

    def is_anchored() -> bool:
        command = [*REDKEY, "receipt", "get", event, "--out", str(receipt), "--data", data]
        subprocess.run(command, check=True, capture_output=True)
        return bool(json.loads(receipt.read_text())["levels"]["anchored"])

    wait_for(is_anchored, "the anchor")
    row = json.loads(receipt.read_text())["offline"]["anchor"][-1]
    print(f"anchored: message {row['sequence_number']} of topic {row['topic_id']} at {row['consensus_timestamp']}")
    mirror = next(
        line.split('"')[1]
        for line in (folder / "hedera.toml").read_text().splitlines()
        if line.startswith("mirror_url")
    )
    print(redkey("receipt", "verify", str(receipt), "--mirror", mirror))
    print(redkey("usage", "credits", "--data", data))
    print(redkey("usage", "reconcile", "--data", data, "--config", str(folder / "hedera.toml")))


def main() -> None:
    """Run the network and the server as separate processes, and stop both."""
    with tempfile.TemporaryDirectory() as name:
        folder, log = Path(name), (Path(name) / "log").open("w")
        config, ready = folder / "hedera.toml", folder / "ready.json"
        processes = [subprocess.Popen([*REDKEY, "hedera", "standin", "--config", str(config)], stdout=log, stderr=log)]
        try:
            wait_for(config.exists, "the network's start")
            command = [*REDKEY, "serve", "--config", str(config), "--data", str(folder / "data"), "--port", "0"]
            processes.append(subprocess.Popen([*command, "--ready-file", str(ready)], stdout=log, stderr=log))
            wait_for(ready.exists, "the server")
            show(folder)
        finally:
            for process in reversed(processes):
                process.send_signal(signal.SIGTERM)
                process.wait(PATIENCE_SECONDS)
            log.close()


if __name__ == "__main__":
    main()
