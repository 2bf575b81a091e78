"""The life cycle of a server process: start, files, stop."""

from __future__ import annotations

import json
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.harness.acts import begin_queue, claim, create_task, gauge, register, until
from tests.harness.client import Client
from tests.harness.server import Server

KEY = "rk_bootstrap1_" + "S3cret" * 6
Start = Callable[..., Server]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_fresh_directory_gets_a_workspace_and_a_key_that_only_its_owner_can_read(start: Start) -> None:
    server = start()
    credentials = json.loads((server.data / "credentials.json").read_text())
    assert credentials["url"] == server.url
    assert credentials["workspaceId"] == server.workspace_id
    assert mode(server.data / "credentials.json") == 0o600
    assert mode(server.data) == 0o700
    assert all(mode(path) & 0o077 == 0 for path in server.data.rglob("*.key"))
    with server.client() as client:
        assert [one["workspaceId"] for one in client.get("/workspaces").json["items"]] == [server.workspace_id]
    printed = server.logs()
    assert server.workspace_id in printed
    # The key is named by its file, never printed: terminals and logs are kept and shared.
    assert str(server.data / "credentials.json") in printed
    assert server.key not in printed


def test_the_ready_file_names_address_and_process_and_is_removed_at_the_stop(start: Start, tmp_path: Path) -> None:
    server = start("--uds", str(tmp_path / "s.sock"))
    ready = json.loads((tmp_path / "server.ready").read_text())
    assert ready == {
        "url": server.url,
        "uds": str(tmp_path / "s.sock"),
        "workspaceId": server.workspace_id,
        "pid": server.process.pid,
        "grpc": None,
    }
    assert httpx2.get(f"{server.url}/healthz", timeout=60).json() == {"status": "ok"}
    assert server.stop() == 0
    assert not (tmp_path / "server.ready").exists()
    assert not (tmp_path / "s.sock").exists()


def test_a_server_without_errors_writes_two_log_lines_and_no_warning(start: Start) -> None:
    server = start()
    with server.client() as client:
        assert client.get("/workspaces").status == 200
    assert server.stop() == 0
    logged = [json.loads(line) for line in server.logs().splitlines() if line.startswith("{")]
    assert [(line["event"], line["level"]) for line in logged] == [("serving", "info"), ("stopped", "info")]
    assert "Warning" not in server.logs()


def test_the_unix_socket_is_its_owners_alone_and_serves_the_same(start: Start, tmp_path: Path) -> None:
    server = start("--uds", str(tmp_path / "s.sock"))
    assert mode(tmp_path / "s.sock") == 0o600
    with Client("http://local", server.key, checked=False, uds=str(tmp_path / "s.sock")) as client:
        assert client.get("/workspaces").status == 200


def test_a_stale_socket_is_replaced_and_any_other_file_is_not(start: Start, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "s.sock"))
    server = start("--uds", str(tmp_path / "s.sock"))
    assert server.uds == str(tmp_path / "s.sock")
    (tmp_path / "file").write_text("mine")
    for path, word in ((tmp_path / "s.sock", "already"), (tmp_path / "file", "not a socket")):
        with pytest.raises(AssertionError, match=word):
            start("--uds", str(path), name="second")
    assert (tmp_path / "file").read_text() == "mine"


def test_the_first_key_can_be_given_and_stays_the_same_after_a_restart(start: Start) -> None:
    server = start(environment={"REDKEY_BOOTSTRAP_KEY": KEY})
    assert server.key == KEY
    assert server.stop() == 0
    again = start(name="again")
    assert (again.key, again.workspace_id) == (KEY, server.workspace_id)
    with again.client() as client:
        assert client.get("/workspaces").status == 200
    assert KEY not in again.logs()


def test_a_first_key_of_another_shape_is_refused(start: Start) -> None:
    for wrong in ("rk_with-dash_" + "a" * 32, "rk_abc_" + "a" * 32, "rk_abcd_" + "a" * 19, "secret"):
        with pytest.raises(AssertionError, match=r"4 to 16 letters and digits, then 20 to 128.*config_refused"):
            start(environment={"REDKEY_BOOTSTRAP_KEY": wrong})


def test_arguments_win_over_variables_and_these_over_the_file(start: Start, tmp_path: Path) -> None:
    config = 'public_url = "https://from.file"\n[limits]\nbody_bytes = 5000\n'
    environment = {"REDKEY_PUBLIC_URL": "https://from.variable", "REDKEY_HOST": "203.0.113.1"}
    server = start("--host", "127.0.0.1", environment=environment, config=config)
    with server.client() as client:
        document = client.get("/openapi.json").json
        assert document["servers"] == [{"url": "https://from.variable"}]
        assert client.post("/queues", {"name": "x" * 6000}).status == 413


def test_an_invalid_setting_is_reported_in_one_line(start: Start) -> None:
    unknown = r"server\.toml: limits\.body_byte is not a setting; did you mean limits\.body_bytes\? \[setting_unknown\]"
    with pytest.raises(AssertionError, match=unknown):
        start(config="[limits]\nbody_byte = 5\n")


def test_a_port_in_use_is_reported_in_one_line(start: Start, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with pytest.raises(AssertionError, match=rf"port {port} of 127\.0\.0\.1 is in use; .*--port.*cannot_listen"):
            start("--port", port)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_answers_waiting_requests_and_ends_streams(start: Start, number: signal.Signals) -> None:
    server = start()
    with server.client() as client:
        begin_queue(client)
        agent_id = register(client)["agentId"]
        replies: list[Any] = []

        def wait_for_work() -> None:
            with server.client() as waiting:
                replies.append(waiting.post("/queues/queue_q/claim-next", {"agentId": agent_id, "wait": 60}))

        def follow() -> None:
            with server.client() as following, following.http.stream("GET", "/stream") as response:
                began.set()
                replies.append(response.read().decode())

        began = threading.Event()
        threads = [threading.Thread(target=work) for work in (wait_for_work, follow)]
        for thread in threads:
            thread.start()
        assert began.wait(30)
        until(lambda: gauge(server.url, "redkey_waiting") == 1)
        head = client.get("/ledger/query?order=desc&limit=1").json["items"][0]["sequence"]
        assert server.stop(number) == 0
        # They were answered: nobody had to be cut off when the time for the stop was over.
        assert "were cut at the stop" not in server.logs()
        for thread in threads:
            thread.join(30)
    claim = next(one for one in replies if not isinstance(one, str))
    stream = next(one for one in replies if isinstance(one, str))
    assert (claim.status, claim.json["status"]) == (200, "no_tasks")
    assert stream.endswith(f"id: {head}\n\n")


def test_what_was_acknowledged_is_there_after_a_kill(start: Start) -> None:
    server = start()
    with server.client() as client:
        begin_queue(client)
        tasks = [create_task(client) for _ in range(20)]
    server.process.kill()
    server.process.wait()
    again = start(name="again")
    with again.client() as client:
        assert all(client.get(f"/tasks/{task_id}").status == 200 for task_id in tasks)


def test_two_servers_on_one_directory_see_each_other(start: Start) -> None:
    first, second = start(), start(name="second")
    with first.client() as one, second.client() as two:
        begin_queue(one)
        agent_id = register(one)["agentId"]
        got: list[Any] = []
        waiting = threading.Thread(
            target=lambda: got.append(two.post("/queues/queue_q/claim-next", {"agentId": agent_id, "wait": 30}))
        )
        waiting.start()
        until(lambda: gauge(second.url, "redkey_waiting") == 1)
        task_id = create_task(one)
        waiting.join(30)
        assert (got[0].json["status"], got[0].json["taskId"]) == ("claimed", task_id)


def test_a_stalled_disk_ends_the_process_with_an_exit_code(tmp_path: Path) -> None:
    """The server stops after a failed fsync, because the state of the disk is unknown."""
    script = (
        "import sys\n"
        "from redkey.stores.sqlite import writer\n"
        "from redkey.errors import StorePoisoned\n"
        "commit, seen = writer.Writer.commit, []\n"
        "def fail(self, unit):\n"
        "    seen.append(1)\n"
        "    if len(seen) > 12: raise StorePoisoned('the disk is gone')\n"
        "    commit(self, unit)\n"
        "writer.Writer.commit = fail\n"
        "from redkey.cli import main\n"
        "main()\n"
    )
    ready, config = tmp_path / "ready", tmp_path / "config.toml"
    # No checkpoint is written beside the requests: one of these is to meet the failure.
    config.write_text("checkpoint_seconds = 3600\n")
    arguments = ["serve", "--data", str(tmp_path / "data"), "--port", "0", "--ready-file", str(ready)]
    arguments += ["--config", str(config)]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-c", script, *arguments], stdout=log, stderr=log)
    try:
        until(lambda: ready.exists() or process.poll() is not None, 60)
        url = json.loads(ready.read_text())["url"]
        key = json.loads((tmp_path / "data" / "credentials.json").read_text())["apiKey"]
        with Client(url, key, checked=False) as client:
            statuses = []
            for number in range(40):
                try:
                    statuses.append(client.post("/queues", {"name": f"q{number}"}).status)
                except httpx2.TransportError:
                    break
            assert 503 in statuses
        assert process.wait(60) == 1
        assert "the store failed" in (tmp_path / "log").read_text()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def test_requests_are_logged_when_it_is_asked_for(start: Start) -> None:
    server = start(config="access_log = true\n")
    with server.client() as client:
        client.get("/queues")
    assert server.stop() == 0
    lines = [json.loads(line) for line in server.logs().splitlines() if line.startswith("{")]
    logged = [(one["method"], one["path"], one["status"]) for one in lines if one["event"] == "request"]
    assert ("GET", "/queues", 200) in logged
    assert [one["event"] for one in lines][-1] == "stopped"


def test_figures_can_be_closed_to_all_but_operators(start: Start) -> None:
    server = start(config="open_metrics = false\n")
    assert httpx2.get(f"{server.url}/metrics", timeout=60).status_code == 401
    with server.client() as operator:
        assert "redkey_requests_total" in operator.get("/metrics").text
        created = operator.post("/workspaces", {}).json
        with server.client(created["apiKey"]) as admin:
            assert admin.get("/metrics").status == 403


def test_the_recipients_of_blocks_can_be_configured(start: Start) -> None:
    server = start(config='[block_routes]\nambiguity = ["role_editor"]\n')
    with server.client() as client:
        begin_queue(client)
        client.post("/roles", {"id": "role_editor", "name": "Editor"})
        worker, editor = (register(client, name)["agentId"] for name in ("Worker", "Editor"))
        client.post(f"/roles/role_editor/agents/{editor}")
        held = claim(client, create_task(client), worker)["claimId"]
        blocked = client.post(f"/claims/{held}/block", {"reason": "Which one?", "blockerType": "ambiguity"})
        assert blocked.status == 200, blocked.text
        mail = client.get(f"/agents/{editor}/inbox").json["items"]
        assert [message["messageType"] for message in mail] == ["task.blocked"]


def test_no_secret_is_in_the_logs_or_the_data_directory(start: Start) -> None:
    server = start(config='log_level = "debug"\n')
    with server.client() as client:
        made = client.post(f"/workspaces/{server.workspace_id}/api-keys", {"scopes": ["read"]}).json["apiKey"]
        with server.client(made) as reader:
            reader.get("/queues")
            reader.post("/queues", {"name": "q"})
        client.request("GET", f"/events/{made}")
    assert server.stop() == 0
    secret = made.rpartition("_")[2].encode()
    kept = [path for path in server.data.rglob("*") if path.is_file() and secret in path.read_bytes()]
    assert kept == []
    assert secret.decode() not in server.logs()
