"""`redkey witness`: made, taught, asked on the command line and over HTTP, as C2SP tlog-witness says."""

from __future__ import annotations

import http.client
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from redkey.cli import main
from redkey.ledger.checkpoint import origin_of
from redkey.ledger.cosignature import with_cosignatures
from redkey.ledger.note import parse_key
from redkey.ledger.trust import TrustedKey
from redkey.ledger.verify import Policy
from redkey.ledger.witness import REQUEST_LIMIT, Request
from tests.harness.small_log import LOG_ID, ORIGIN, OTHER_LOG, SIGNER, WORKSPACE, SmallLog
from tests.harness.whole_receipt import judged

LOG = SmallLog(60)
FORK = SmallLog(60, seed="fork")
SERVE = [Path(sys.executable).with_name("redkey"), "witness", "serve", "--listen", "127.0.0.1:0"]
# Status, content type, body.
Answer = tuple[int, str, str]


def body(old: int, size: int, log: SmallLog = LOG, origin: str = ORIGIN) -> bytes:
    hashes = tuple(log.tree.consistency_proof(old, size))
    return Request(old, hashes, log.checkpoint(size, origin), log.note(size=size, origin=origin)).encode()


def witness(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["witness", *map(str, arguments)])


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    assert witness("init", "--name", "witness.example/w", "--dir", tmp_path / "w").exit_code == 0
    assert witness("trust", "--dir", tmp_path / "w", SIGNER.verifier).exit_code == 0
    return tmp_path / "w"


def saved(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "request"
    path.write_bytes(data)
    return path


def test_init_makes_a_key_and_prints_what_others_need(tmp_path: Path) -> None:
    result = witness("init", "--name", "witness.example/w", "--dir", tmp_path / "w")
    key = parse_key(result.output)
    assert key.name == "witness.example/w"
    assert stat.S_IMODE((tmp_path / "w" / "witness.key").stat().st_mode) == 0o600
    again = witness("init", "--name", "witness.example/w", "--dir", tmp_path / "w")
    assert again.exit_code == 1
    assert "key_exists" in again.output
    assert witness("init", "--name", "a b", "--dir", tmp_path / "v").exit_code == 2


def test_a_checkpoint_is_cosigned_and_the_receipt_is_then_witnessed(directory: Path, tmp_path: Path) -> None:
    result = witness("cosign", "--dir", directory, saved(tmp_path, body(0, 60)))
    assert result.exit_code == 0, result.output
    key = parse_key((directory / "witness.pub").read_text())
    note = with_cosignatures(LOG.note(), result.output.encode(), [key])
    policy = Policy(keys=(TrustedKey(SIGNER.verifier),), witnesses=(key,))
    assert judged(LOG.receipt(7, note), policy).holds("integrity", "signed", "witnessed")


def test_a_bare_checkpoint_will_do_where_no_proof_is_needed(directory: Path, tmp_path: Path) -> None:
    bare = saved(tmp_path, LOG.note(size=20).encode())
    assert witness("cosign", "--dir", directory, bare).exit_code == 0
    assert witness("cosign", "--dir", directory, bare).exit_code == 0
    later = saved(tmp_path, LOG.note(size=30).encode())
    result = witness("cosign", "--dir", directory, later)
    assert result.exit_code == 1
    assert "the last size cosigned is 20" in result.output
    proof = tmp_path / "proof"
    proof.write_bytes(body(20, 30).partition(b"\n\n")[0])
    assert witness("cosign", "--dir", directory, "--proof", proof, later).exit_code == 0
    whole = saved(tmp_path, body(30, 40))
    assert witness("cosign", "--dir", directory, "--proof", proof, whole).exit_code == 2


def test_a_log_can_be_named_for_one_call(directory: Path, tmp_path: Path) -> None:
    log = SmallLog(5)
    origin = f"{OTHER_LOG.verifier.name}/w/e1"
    note = log.note(OTHER_LOG, origin=origin)
    path = saved(tmp_path, Request(0, (), log.checkpoint(origin=origin), note).encode())
    assert "origin_unknown" in witness("cosign", "--dir", directory, path).output
    assert witness("cosign", "--dir", directory, "--log-key", OTHER_LOG.verifier, path).exit_code == 0


def test_a_fork_is_refused_kept_and_shown(directory: Path, tmp_path: Path) -> None:
    assert witness("cosign", "--dir", directory, saved(tmp_path, body(0, 20))).exit_code == 0
    result = witness("cosign", "--dir", directory, saved(tmp_path, body(20, 30, FORK)))
    assert result.exit_code == 1
    assert "split_view" in result.output
    status = witness("status", "--dir", directory).output
    assert f"seen    {ORIGIN} size 20" in status
    assert "evidence/" in status.splitlines()[-1]


@pytest.mark.parametrize(
    "arguments",
    [
        ["status", "--dir", "nowhere"],
        ["cosign", "--dir", "nowhere", __file__],
        ["trust", "--dir", "nowhere", "x"],
        ["serve", "--dir", "nowhere"],
    ],
)
def test_a_directory_without_a_witness_is_a_wrong_use(arguments: list[str]) -> None:
    assert witness(*arguments).exit_code == 2


def test_wrong_keys_and_addresses_are_a_wrong_use(directory: Path, tmp_path: Path) -> None:
    assert witness("trust", "--dir", directory, "nonsense").exit_code == 2
    assert witness("trust", "--dir", directory, (directory / "witness.pub")).exit_code == 2
    for listen in ("0.0.0.0:1", "example.org:1", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:99999", "[::]:1"):
        assert witness("serve", "--dir", directory, "--listen", listen).exit_code == 2
    result = witness("cosign", "--dir", directory, saved(tmp_path, b"hello"))
    assert result.exit_code == 1
    assert "note_malformed" in result.output


def serving(directory: Path) -> list[str | Path]:
    """The command that serves a witness on a free port."""
    return [Path(sys.executable).with_name("redkey"), "witness", "serve", "--dir", directory, "--listen", "127.0.0.1:0"]


@pytest.fixture
def server(directory: Path) -> Iterator[tuple[str, int]]:
    command = serving(directory)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            host, _, port = process.stdout.readline().strip().rpartition("http://")[2].rpartition(":")
            yield host, int(port)
        finally:
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=30)
            assert "Traceback" not in errors


def post(
    server: tuple[str, int], data: bytes, method: str = "POST", path: str = "/add-checkpoint"
) -> tuple[int, str, str]:
    connection = http.client.HTTPConnection(*server, timeout=30)
    try:
        connection.request(method, path, data)
        answer = connection.getresponse()
        return answer.status, answer.getheader("Content-Type", ""), answer.read().decode()
    finally:
        connection.close()


def test_http_answers_have_the_statuses_of_the_protocol(server: tuple[str, int], directory: Path) -> None:
    key = parse_key((directory / "witness.pub").read_text())
    status, _, answer = post(server, body(0, 20))
    assert status == 200
    assert answer.startswith("— witness.example/w ")
    assert len(with_cosignatures(LOG.note(size=20), answer.encode(), [key]).signatures) == 2
    assert post(server, body(0, 30)) == (409, "text/x.tlog.size", "20\n")
    assert post(server, body(20, 20, FORK))[::2] == (409, "20\n")
    assert post(server, body(20, 30, FORK))[0] == 422
    assert post(server, body(20, 30))[0] == 200
    stranger = SmallLog(5)
    unknown = stranger.note(OTHER_LOG, origin="redkey/somebody/w/e1")
    request = Request(0, (), stranger.checkpoint(origin="redkey/somebody/w/e1"), unknown)
    assert post(server, request.encode())[0] == 404
    unsigned = Request(30, (), LOG.checkpoint(30), LOG.note(OTHER_LOG, size=30))
    assert post(server, unsigned.encode())[0] == 403
    assert post(server, b"old 40\n\n" + LOG.note(size=30).encode())[0] == 400
    assert post(server, b"hello")[0] == 400
    assert post(server, bytes(REQUEST_LIMIT + 1))[0] == 413
    assert post(server, b"", "GET")[0] == 405
    assert post(server, b"", path="/")[0] == 404
    second = origin_of(LOG_ID, WORKSPACE, 2)
    assert post(server, body(0, 9, FORK, second))[0] == 200
    assert post(server, body(30, 40))[0] == 403


def test_a_client_that_knows_nothing_learns_the_size_and_goes_on(server: tuple[str, int]) -> None:
    assert post(server, body(0, 11))[0] == 200
    status, _, size = post(server, body(0, 33))
    assert status == 409
    assert post(server, body(int(size), 33))[0] == 200


def test_of_racing_requests_for_one_log_exactly_one_passes(server: tuple[str, int]) -> None:
    assert post(server, body(0, 10))[0] == 200
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda size: post(server, body(10, size)), range(20, 60, 2)))
    statuses = [status for status, _, _ in answers]
    assert statuses.count(200) == 1
    assert statuses.count(409) == 19
    (winner,) = (20 + 2 * index for index, status in enumerate(statuses) if status == 200)
    assert {text for status, _, text in answers if status == 409} == {f"{winner}\n"}


def test_two_histories_sent_at_once_are_never_both_cosigned(server: tuple[str, int], directory: Path) -> None:
    assert post(server, body(0, 1))[0] == 200
    bodies = [body(1, size, log) for size in range(10, 20) for log in (LOG, FORK)]
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda data: post(server, data)[0], bodies))
    assert statuses.count(200) == 1
    assert set(statuses) <= {200, 409, 422}


def test_a_client_that_goes_away_and_a_disk_that_refuses_do_no_harm(server: tuple[str, int], directory: Path) -> None:
    with socket.create_connection(server) as gone:
        gone.sendall(b"POST /add-checkpoint HTTP/1.1\r\nHost: w\r\nContent-Length: 1000\r\n\r\nold 0")
    assert post(server, body(0, 5))[0] == 200
    (place,) = directory.glob("seen/*")
    (place / "e1").unlink()
    (place / "e1").mkdir()
    status, _, answer = post(server, body(5, 6))
    assert (status, answer) == (500, "the witness cannot keep its memory; nothing was cosigned\n")
    (place / "e1").rmdir()
    assert post(server, body(0, 6))[0] == 200


def test_what_was_cosigned_survives_a_kill(directory: Path) -> None:
    command = serving(directory)
    last = 0
    for size in (5, 17, 31):
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            assert process.stdout
            host, _, port = process.stdout.readline().strip().rpartition("http://")[2].rpartition(":")
            assert post((host, int(port)), body(last, size))[0] == 200
            process.kill()
            process.wait()
        last = size
    assert f"size {last}" in witness("status", "--dir", directory).output
