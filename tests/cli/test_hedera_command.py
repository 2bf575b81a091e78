"""From a stand-in network to an anchored receipt, by commands alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest

from redkey.config import load
from redkey.hedera.opening import read_key

REDKEY = [sys.executable, "-m", "redkey"]
PATIENCE_SECONDS = 60.0


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """The settings of a stand-in network that runs as a process of its own."""
    file = tmp_path_factory.mktemp("network") / "hedera.toml"
    process = subprocess.Popen([*REDKEY, "hedera", "standin", "--config", str(file)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert "simulated Hedera network" in process.stdout.readline()
    assert str(file) in process.stdout.readline()
    yield file
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_SECONDS) == 0
    process.stdout.close()


@pytest.fixture
def config(running: Path, tmp_path: Path) -> Path:
    """A copy of these settings, with a key file of its own."""
    file, key = tmp_path / "hedera.toml", tmp_path / "hedera.key"
    key.write_bytes(running.with_suffix(".key").read_bytes())
    key.chmod(0o600)
    file.write_text(running.read_text().replace(str(running.with_suffix(".key")), str(key)))
    return file


def redkey(*arguments: str, code: int = 0, **environment: str) -> str:
    found = subprocess.run(
        [*REDKEY, *arguments], capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )
    assert found.returncode == code, found.stdout + found.stderr
    return found.stdout + (found.stderr if code else "")


def serve(tmp_path: Path, config: Path) -> subprocess.Popen[str]:
    data, ready = tmp_path / "data", tmp_path / "ready.json"
    ready.unlink(missing_ok=True)
    command = [
        *REDKEY,
        "serve",
        "--config",
        str(config),
        "--data",
        str(data),
        "--port",
        "0",
        "--ready-file",
        str(ready),
    ]
    log = (tmp_path / "log").open("a")
    process = subprocess.Popen(command, stdout=log, stderr=log, text=True)
    log.close()
    wait_for(ready.exists)
    return process


def wait_for(condition):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not happen within a minute"
        time.sleep(0.05)
    return found


def test_a_server_anchors_and_its_receipts_verify_against_the_mirror_and_offline(tmp_path, config):
    settings = load(config, {}, {}).hedera
    data, receipt, saved = str(tmp_path / "data"), tmp_path / "receipt.json", tmp_path / "mirror.json"
    server = serve(tmp_path, config)
    try:
        redkey("task", "create", "--role", "writer", "--title", "Write", "--data", data)
        event_id = redkey("events", "tail", "--type", "task.created", "-n", "1", "-q", "--data", data).strip()

        def anchored() -> bool:
            redkey("receipt", "get", event_id, "--out", str(receipt), "--data", data)
            return json.loads(receipt.read_text())["levels"]["anchored"]

        wait_for(anchored)
        online = redkey("receipt", "verify", str(receipt), "--mirror", settings.mirror_url)
        assert "anchored   holds" in online
        url = f"{settings.mirror_url}/api/v1/topics/{settings.topic}/messages"
        saved.write_text(httpx2.get(url).text)
        assert "anchored   holds" in redkey("receipt", "verify", str(receipt), "--mirror", str(saved))
        changed = saved.read_text().replace('"sequence_number":1', '"sequence_number":2')
        saved.write_text(changed)
        redkey("receipt", "verify", str(receipt), "--mirror", str(saved), code=1)
        assert "mirror_unreachable" in redkey(
            "receipt", "verify", str(receipt), "--mirror", "http://127.0.0.1:1", code=2
        )
        fees = json.loads(redkey("usage", "credits", "--json", "--data", data))["ledgerFees"]
        assert fees["currency"] == "USD"
        assert fees["tinybars"] > 0
        redkey("backup", data, str(tmp_path / "backup"), "--with-keys")
        redkey("ledger", "dump", data, "--content", "--out", str(tmp_path / "dump.jsonl"))
    finally:
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE_SECONDS) == 0
    told = redkey("usage", "reconcile", "--data", data, "--config", str(config))
    assert "fees: " in told
    redkey("fsck", data)
    secret = Path(settings.key_file).read_text().strip()
    raw = read_key(Path(settings.key_file)).to_string_raw()
    assert (tmp_path / "backup").is_dir()
    for file in tmp_path.rglob("*"):
        if file.is_file() and file != Path(settings.key_file):
            for shape in (secret.encode(), raw.encode(), bytes.fromhex(raw)):
                assert shape not in file.read_bytes(), file


def test_topics_and_balances_by_command(config):
    created = redkey("hedera", "topic", "create", "--config", str(config), "--memo", "mine").strip()
    assert created.startswith("0.0.")
    assert "HBAR" in redkey("hedera", "balance", "--config", str(config))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: text.replace('key_file = "', 'key_file = "/nowhere'), "key file"),
        (lambda text: text.replace("operator = ", 'operator = "" # '), "hedera.operator"),
        (lambda text: text.replace("mirror_url = ", 'mirror_url = "" # '), "mirror_url"),
        (lambda text: text.replace("=0.0.3", ""), "HOST:PORT=ACCOUNT"),
        (lambda text: text + "secret = 'x'\n", "not a setting"),
    ],
)
def test_wrong_settings_are_named_with_the_next_step(config, change, words):
    config.write_text(change(config.read_text()))
    assert words in redkey("hedera", "balance", "--config", str(config), code=1)


def test_a_key_file_that_others_can_read_is_refused(config):
    key = Path(load(config, {}, {}).hedera.key_file)
    key.chmod(0o644)
    assert "chmod 600" in redkey("hedera", "balance", "--config", str(config), code=1)
