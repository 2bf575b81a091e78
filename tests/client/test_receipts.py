"""A receipt that the SDK fetched is the file that `redkey receipt verify` takes, without a server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from redkey.client import RedKey


def verify(receipt: Path, key: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "redkey", "receipt", "verify", str(receipt), "--key", key]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_a_receipt_verifies_offline_and_a_changed_one_does_not(rk: RedKey, tmp_path: Path) -> None:
    queue = rk.queues.create("podcast")
    receipt = rk.receipts.get(queue.event_id)
    assert (receipt.type, receipt.verification.status) == ("queue.created", "verified")
    [key] = rk.checkpoints.latest().keys
    file = receipt.save(tmp_path / "receipt.json")
    done = verify(file, key)
    assert done.returncode == 0, done.stdout + done.stderr
    file.write_bytes(receipt.document.replace(b"queue.created", b"queue.updated"))
    assert verify(file, key).returncode == 1
