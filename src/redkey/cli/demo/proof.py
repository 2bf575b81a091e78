"""The proof at the end: a receipt leaves the server, is verified when the server is gone, and is refused when a word of
it is changed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from redkey.cli.demo.scene import Race
from redkey.client import RedKey


class Evidence(NamedTuple):
    """The files that are handed to a stranger, and one that somebody tampered with."""

    receipt: Path
    tampered: Path
    key: Path


class Check(NamedTuple):
    """What the verifier said: the command, its words, its exit code."""

    command: str
    said: str
    code: int


def export(rk: RedKey, race: Race, folder: Path) -> Evidence:
    """Fetch the receipt of a won race and the log's public key; make a copy in which the loser won."""
    receipt = rk.receipts.get(race.event_id)
    evidence = Evidence(folder / "receipt.json", folder / "tampered.json", folder / "log.pub")
    receipt.save(evidence.receipt)
    # Everywhere, so that the forgery contradicts itself in nothing but the proof.
    evidence.tampered.write_bytes(receipt.document.replace(race.winner.encode(), race.loser.encode()))
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
