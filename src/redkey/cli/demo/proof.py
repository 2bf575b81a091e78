"""The proof at the end: a receipt is exported, verified after the server has stopped, and refused after a change."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from redkey.cli.demo.scene import Race
from redkey.client import RedKey


class Evidence(NamedTuple):
    """The files for a verifier, and a tampered copy."""

    receipt: Path
    tampered: Path
    key: Path


class Check(NamedTuple):
    """The verifier's result: the command, its output, its exit code."""

    command: str
    said: str
    code: int


def export(rk: RedKey, race: Race, folder: Path) -> Evidence:
    """Fetch the receipt of a won race and the log's public key; make a copy in which the loser won."""
    receipt = rk.receipts.get(race.event_id)
    evidence = Evidence(folder / "receipt.json", folder / "tampered.json", folder / "log.pub")
    receipt.save(evidence.receipt)
    # Replaced everywhere, so that only the proof contradicts the forgery.
    evidence.tampered.write_bytes(receipt.document.replace(race.winner.encode(), race.loser.encode()))
    evidence.key.write_text("".join(f"{key}\n" for key in rk.checkpoints.latest().keys))
    return evidence


def check(evidence: Evidence, name: str) -> Check:
    """Run the same command that any verifier would run."""
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
