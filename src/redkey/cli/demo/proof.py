"""The proof at the end: a receipt leaves the server, is verified when the server is gone, and is refused when a word of
it is changed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from redkey.client import RedKey


class Evidence(NamedTuple):
    """The files that are handed to a stranger, and one that somebody tampered with."""

    receipt: Path
    tampered: Path
    key: Path
    event_id: str


class Check(NamedTuple):
    """What the verifier said: the command, its words, its exit code."""

    command: str
    said: str
    code: int


def export(rk: RedKey, event_id: str, folder: Path) -> Evidence:
    """Fetch the receipt of a won claim and the log's public key; make a copy that says somebody else won."""
    receipt = rk.receipts.get(event_id)
    evidence = Evidence(folder / "receipt.json", folder / "tampered.json", folder / "log.pub", event_id)
    receipt.save(evidence.receipt)
    # One word: the event that says who won is made to say that the work had begun.
    evidence.tampered.write_bytes(receipt.document.replace(b"task.claimed", b"task.started", 1))
    evidence.key.write_text("".join(f"{key}\n" for key in rk.checkpoints.latest().keys))
    return evidence


def check(evidence: Evidence, name: str) -> Check:
    """Ask the command that anybody would use."""
    arguments = ["receipt", "verify", name, "--key", evidence.key.name]
    done = subprocess.run(  # noqa: S603 (our own interpreter and our own files)
        [sys.executable, "-m", "redkey", *arguments],
        cwd=evidence.receipt.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    return Check("redkey " + " ".join(arguments), done.stdout + done.stderr, done.returncode)
