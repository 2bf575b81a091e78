"""A server sends its checkpoints to its witnesses by itself: real processes, and a verifier who is offline."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from redkey.ledger.note import parse_key
from redkey.services.fsck.report import Report
from tests.harness.acts import begin_queue, claim, create_task, gauge, register
from tests.harness.client import Client
from tests.harness.server import Server, begin, serving
from tests.harness.workshop import checked

REDKEY = [sys.executable, "-m", "redkey"]
PATIENCE_SECONDS = 60.0


class WitnessProcess:
    """`redkey witness serve`, run by another party."""

    def __init__(self, directory: Path, name: str) -> None:
        # Bound, without listening, so that no other process gets the port while the witness is down.
        self._held = socket.socket()
        self._held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._held.bind(("127.0.0.1", 0))
        self.directory, self._listen = directory, f"127.0.0.1:{self._held.getsockname()[1]}"
        self.key = redkey("witness", "init", "--name", f"{name}.example/w", "--dir", str(directory)).strip()
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> str:
        """Its address: the same after a restart."""
        command = [*REDKEY, "witness", "serve", "--dir", str(self.directory), "--listen", self._listen]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip().rpartition(" ")[2]

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(PATIENCE_SECONDS)
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None

    def end(self) -> None:
        self.stop()
        self._held.close()

    def trust(self, *keys: str) -> None:
        redkey("witness", "trust", "--dir", str(self.directory), *keys)

    @property
    def status(self) -> str:
        return redkey("witness", "status", "--dir", str(self.directory))


def redkey(*arguments: str, cwd: Path | None = None, code: int = 0) -> str:
    ended = subprocess.run(
        [*REDKEY, *arguments], cwd=cwd, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
    )
    assert ended.returncode == code, (ended.stdout, ended.stderr)
    return ended.stdout


def until(true: Callable[[], Any]) -> Any:
    """Wait until it is true."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if found := true():
            return found
        time.sleep(0.02)
    raise AssertionError("it did not come to be")


@pytest.fixture
def witnesses(tmp_path: Path) -> Iterator[list[WitnessProcess]]:
    with ExitStack() as stack:
        made = [WitnessProcess(tmp_path / name, name) for name in ("one", "two")]
        for one in made:
            stack.callback(one.end)
        yield made


def configured(*witnesses: WitnessProcess) -> str:
    tables = [f'[[witnesses]]\nurl = "{one.start()}"\nkey = "{one.key}"\n' for one in witnesses]
    return "witness_seconds = 0.05\n" + "".join(tables)


def a_log(directory: Path, *witnesses: WitnessProcess) -> str:
    """A data directory that was served once, with a queue and an agent; the key of its log, which witnesses know."""
    server = begin(directory)
    with server.client() as client:
        begin_queue(client)
        register(client)
    assert server.stop() == 0
    key = (server.data / "keys" / "signer-0001.pub").read_text().strip()
    for one in witnesses:
        one.trust(key)
    return key


def new_event(client: Client) -> str:
    """The event of a claim that was just won."""
    agent_id = client.get("/agents").json["items"][0]["agentId"]
    return str(claim(client, create_task(client), agent_id)["eventId"])


def receipt_of(client: Client, event_id: str) -> bytes:
    return client.get(f"/receipts/{event_id}").content


def is_witnessed(client: Client, event_id: str) -> bool:
    return bool(client.get(f"/events/{event_id}/receipt").json["levels"]["witnessed"])


def verified(directory: Path, receipt: bytes, log_key: str, *witnesses: WitnessProcess, code: int = 0) -> str:
    """Verify a receipt as a reader who has the file and the keys, and nothing else."""
    place = directory / "elsewhere"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    (place / "receipt.json").write_bytes(receipt)
    keys = [text for one in witnesses for text in ("--witness", one.key)]
    return redkey("receipt", "verify", "receipt.json", "--key", log_key, *keys, cwd=place, code=code)


def fsck_of(server: Server) -> Report:
    return checked(server.data)


def test_receipts_become_witnessed_and_a_stranger_can_tell(tmp_path: Path, witnesses: list[WitnessProcess]) -> None:
    log_key = a_log(tmp_path, *witnesses)
    with serving(tmp_path, config=configured(*witnesses)) as server, server.client() as client:
        event_id = new_event(client)
        until(lambda: is_witnessed(client, event_id))
        # Both have cosigned the same checkpoint.
        receipt = until(
            lambda: (
                found
                if all(parse_key(w.key).name in (found := receipt_of(client, event_id)).decode() for w in witnesses)
                else None
            )
        )
        assert server.stop() == 0
    assert "witnessed" in verified(tmp_path, receipt, log_key, *witnesses)
    assert fsck_of(server).clean
    # A witness of another party has not cosigned it.
    other = WitnessProcess(tmp_path / "three", "three")
    other.end()
    verified(tmp_path, receipt, log_key, other, code=1)


def test_a_witness_that_is_down_delays_nobody_and_is_asked_again(
    tmp_path: Path, witnesses: list[WitnessProcess]
) -> None:
    one, two = witnesses
    log_key = a_log(tmp_path, *witnesses)
    with serving(tmp_path, config=configured(one, two)) as server, server.client() as client:
        first = new_event(client)
        until(lambda: is_witnessed(client, first))
        two.stop()
        second = new_event(client)
        until(lambda: is_witnessed(client, second))
        receipt = receipt_of(client, second)
        verified(tmp_path, receipt, log_key, one)
        verified(tmp_path, receipt, log_key, one, two, code=1)
        until(lambda: "witness_unreachable" in server.logs())
        assert gauge(server.url, "redkey_witnesses_away") == 1
        two.start()
        # Nothing new is recorded: the missed checkpoint is sent to it all the same.
        name = parse_key(two.key).name
        receipt = until(lambda: found if name in (found := receipt_of(client, second)).decode() else None)
        verified(tmp_path, receipt, log_key, one, two)
        assert gauge(server.url, "redkey_witnesses_away") == 0
        assert server.stop() == 0


def test_a_second_history_is_refused_and_told_of(tmp_path: Path, witnesses: list[WitnessProcess]) -> None:
    """The data directory is copied and both copies continue: the witness cosigns one of them."""
    witness = witnesses[0]
    a_log(tmp_path, witness)
    config = configured(witness)
    copy = tmp_path / "fork"
    copy.mkdir()
    shutil.copytree(tmp_path / "data", copy / "data")
    with serving(tmp_path, config=config) as server, server.client() as client:
        event_id = new_event(client)
        until(lambda: is_witnessed(client, event_id))
        assert server.stop() == 0
    with serving(copy) as fork, fork.client() as client:
        for _ in range(3):
            event_id = new_event(client)
        assert fork.stop() == 0
    with serving(copy, config=config) as fork, fork.client() as client:
        until(lambda: "split_view" in fork.logs())
        assert not is_witnessed(client, event_id)
        # It continues to serve: its readers decide whether to trust it.
        assert new_event(client)
        assert fork.stop() == 0
    assert "split " in witness.status


def test_a_log_that_has_lost_its_end_is_told_of(tmp_path: Path, witnesses: list[WitnessProcess]) -> None:
    """A data directory is put back from a plain copy, not by `redkey restore`: the witness remembers more."""
    a_log(tmp_path, witnesses[0])
    config = configured(witnesses[0])
    shutil.copytree(tmp_path / "data", tmp_path / "older")
    with serving(tmp_path, config=config) as server, server.client() as client:
        event_id = new_event(client)
        until(lambda: is_witnessed(client, event_id))
        assert server.stop() == 0
    shutil.rmtree(tmp_path / "data")
    (tmp_path / "older").rename(tmp_path / "data")
    with serving(tmp_path, config=config, name="again") as server:
        until(lambda: "this log lost its end, or has two histories" in server.logs())
        assert server.stop() == 0


def test_a_witness_that_does_not_know_the_log_is_told_of_and_asked_again(
    tmp_path: Path, witnesses: list[WitnessProcess]
) -> None:
    log_key = a_log(tmp_path)
    with serving(tmp_path, config=configured(witnesses[0])) as server, server.client() as client:
        event_id = new_event(client)
        until(lambda: "it does not cosign for this log" in server.logs())
        witnesses[0].trust(log_key)
        until(lambda: is_witnessed(client, event_id))
        assert server.stop() == 0


@pytest.mark.parametrize(
    "table",
    [
        'url = "ftp://witness.example"\nkey = "w"',
        'url = "http://127.0.0.1:9"\nkey = "nothing"',
        'url = "http://127.0.0.1:9"',
    ],
)
def test_a_witness_that_cannot_be_one_is_refused_at_the_start(tmp_path: Path, table: str) -> None:
    (tmp_path / "redkey.toml").write_text(f"[[witnesses]]\n{table}\n")
    command = [*REDKEY, "serve", "--port", "0", "--data", str(tmp_path / "data")]
    command += ["--config", str(tmp_path / "redkey.toml")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)
    assert ended.returncode != 0
    assert "witnesses" in ended.stderr
    assert "Traceback" not in ended.stderr
