"""Proof: how fast a ledger is verified, checked, dumped and loaded, and what a receipt costs."""

from __future__ import annotations

import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import orjson

from bench import row
from redkey.ledger.chain import verify_records
from redkey.ledger.merkle import Edge
from redkey.ledger.record import EMPTY_HEAD, Record
from redkey.ledger.tail import records_after
from redkey.services.dump import dump
from redkey.services.fsck.check import Fsck
from redkey.services.load import Loader
from redkey.services.receipts import receipt_for
from redkey.stores.sqlite import SqliteStore
from redkey.stores.sqlite.inspection import Inspection
from redkey.wire.decode import decode
from tests.harness.workshop import Workshop, open_signing

VERIFIED = 100_000
# It measures sizes and orders of magnitude, and takes a while.
ROUNDS = 1


def main(quick: bool) -> None:
    """Measure and print everything; `quick` runs a shorter measurement."""
    for tasks in (1_000, 3_000) if quick else (2_000, 15_000):
        with tempfile.TemporaryDirectory() as folder:
            directory = Path(folder) / "data"
            size = f"{_grow(directory, tasks):,} records"
            print(f"  {size}: whole lives of tasks, with content and checkpoints")
            _verify(directory, size)
            _receipts(directory, 50 if quick else 500, size)
            _round_trip(directory, size)
            # In a separate process, so that its memory is the memory of the check.
            command = [sys.executable, "-c", f"from bench.proof import check; check({folder!r})"]
            rate, mebibytes = map(float, subprocess.run(command, check=True, capture_output=True).stdout.split())
            row(f"fsck of {size}, everything against everything", rate)
            row(f"fsck of {size}, memory", mebibytes, unit="MiB", least=True)


def _grow(directory: Path, tasks: int) -> int:
    with Workshop(directory) as workshop:
        workshop.furnish()
        for _ in range(tasks // 1000):
            workshop.work(1000)
            workshop.clock.advance(600)
            workshop.signing.sign()
        return workshop.store.head(workshop.topic).sequence


def _verify(directory: Path, size: str) -> None:
    with SqliteStore(directory) as store:
        batches = [list(batch) for batch in records_after(store, store.topics()[0], 0)]
    row(f"verify chain and tree of {size}", max(_verified(batches) for _ in range(5)), aim=VERIFIED)


def _verified(batches: Sequence[Sequence[Record]]) -> float:
    head, edge, began = EMPTY_HEAD, Edge(), time.process_time()
    for batch in batches:
        head, damages = verify_records(head, edge, batch)
        assert not damages
    return edge.size / (time.process_time() - began)


def _receipts(directory: Path, count: int, size: str) -> None:
    """Receipts of records from the whole ledger, under the newest checkpoint."""
    with SqliteStore(directory) as store:
        topic, signing = store.topics()[0], open_signing(store)
        signing.sign()
        places = random.Random(1).choices(range(store.head(topic).sequence), k=count)
        wires = [decode(store.read(topic, place, 1)[0].wire)["wire_id"] for place in places]
        best, sizes = 0.0, []
        for _ in range(3):
            began = time.process_time()
            made = [receipt_for(store, topic, wire_id, signing, base_url="http://localhost") for wire_id in wires]
            best = max(best, count / (time.process_time() - began))
            sizes = [len(orjson.dumps(one)) for one in made]
    row(f"receipts made of {size}", best, aim=1000)
    row(f"a receipt of {size}, with its wire", sum(sizes) / len(sizes), unit="B", least=True)


def _round_trip(directory: Path, size: str) -> None:
    began = time.process_time()
    with Inspection(directory) as evidence:
        lines = list(dump(evidence, evidence.topics()))
    row(f"dump of {size}", len(lines) / (time.process_time() - began))
    began = time.process_time()
    with SqliteStore(directory.with_name("again")) as store:
        Loader(store).load(lines)
    row(f"load of {size}, every line checked", len(lines) / (time.process_time() - began))


def check(folder: str) -> None:
    """Run fsck, and print its records per second and the mebibytes of this process."""
    began = time.process_time()
    with Inspection(Path(folder) / "data") as evidence:
        report = Fsck(evidence).run()
    assert report.clean, report.faults
    rate = report.figures["records"] / (time.process_time() - began)
    # Not by getrusage, which includes the process before exec.
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    print(rate, int(found[1]) / 1024)
