"""RedKey in half a minute: agents as separate processes race for tasks on a real server, over plain HTTP.

Exactly one wins each task, the others are told whom they lost to; one agent is killed while it holds a task, and
the task moves on; then a receipt is verified offline, and a tampered copy of it is refused. Standard library only:
what an agent does here, any program in any language can do.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

GUESTS = ("Piers Gorman", "Ada Chen", "Tomas Varga", "Lena Okafor", "Ravi Menon", "Iris Novak")
AGENTS = ("atlas", "briar", "cedar")
LEASE_SECONDS = 5


def call(url: str, key: str, method: str, path: str, body: dict[str, object] | None = None) -> dict[str, object]:
    """One request; the answer as JSON."""
    request = urllib.request.Request(
        url + path,
        method=method,
        data=json.dumps(body).encode() if body is not None else None,
        headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=70) as answer:
        return dict(json.load(answer))


def work(name: str, url: str, key: str, agent_id: str) -> None:
    """An agent: see what is available, claim it, do it, and take a miss as the news that it is."""
    while True:
        # Wait for work a little longer than a lost lease takes to open its task again.
        seen = call(url, key, "GET", f"/queues/queue_podcast/tasks/available?wait={LEASE_SECONDS + 3}")["items"]
        if not seen:
            return
        for task in seen:
            body = {"agentId": agent_id, "leaseSeconds": LEASE_SECONDS}
            answer = call(url, key, "POST", f"/tasks/{task['taskId']}/claim", body)
            won = answer["status"] == "claimed"
            hangs = won and task["title"].endswith(GUESTS[2]) and first_to_fail()
            print(json.dumps({"agent": name, "title": task["title"], **answer}), flush=True)
            if not won:
                continue
            claim = f"/claims/{answer['claimId']}"
            call(url, key, "POST", f"{claim}/start", {})
            if hangs:
                signal.pause()  # it hangs here, holding the task, until the demo kills it
            try:
                call(url, key, "POST", f"{claim}/complete", {"summary": f"{task['title']}: five facts found."})
            except urllib.error.HTTPError as refused:
                print(json.dumps({"agent": name, "title": task["title"], "status": str(refused.code)}), flush=True)


def first_to_fail() -> bool:
    """One agent, whichever wins the task first, is the one that hangs."""
    try:
        Path(os.environ["REDKEY_DEMO_HANG"]).unlink()
    except FileNotFoundError:
        return False
    return True


def show(line: str, names: dict[str, str]) -> dict[str, str]:
    """Tell one step of the race."""
    step = json.loads(line)
    if step["status"] == "claimed":
        names[step["agentId"]] = step["agent"]
        print(f"  {step['agent']:6} won     {step['title']}")
    elif step["status"] == "missed":
        print(f"  {step['agent']:6} missed  {step['title']}, to {names.get(step['winningAgentId'], 'another')}")
    else:
        print(f"  {step['agent']:6} {step['status']}  {step['title']}")
    return dict(step)


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="redkey-demo-") as place:
        home = Path(place)
        command = [str(Path(sys.executable).with_name("redkey"))]
        serve = [*command, "serve", "--data", place + "/data", "--port", "0", "--ready-file", place + "/ready"]
        with (home / "server.log").open("w") as log:
            server = subprocess.Popen(serve, stdout=log, stderr=log)
        try:
            return race(home, command, server)
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(timeout=20)


def race(home: Path, command: list[str], server: subprocess.Popen[bytes]) -> int:
    ready = wait_for(home / "ready", server)
    url, workspace = ready["url"], ready["workspaceId"]
    admin = json.loads((home / "data" / "credentials.json").read_text())["apiKey"]
    print(f"A server with an empty ledger runs at {url}.\n")
    call(url, admin, "POST", "/queues", {"id": "queue_podcast", "name": "Podcast"})
    role = {"id": "role_researcher", "name": "Researcher", "description": "Finds source material"}
    call(url, admin, "POST", "/roles", role)
    print(f"{len(AGENTS)} agents register by card and get the role; {len(GUESTS)} tasks wait. They race:")
    hang = home / "hang"
    hang.touch()
    agents = [start_agent(url, admin, workspace, name, hang) for name in AGENTS]
    for guest in GUESTS:
        body = {"title": f"Research {guest}", "requiredRoles": ["role_researcher"], "input": {"guest": guest}}
        call(url, admin, "POST", "/queues/queue_podcast/tasks", body)
    events = follow(agents)
    print(
        f"\nEvery task has exactly one winner; {sum(e['status'] == 'missed' for e in events)} misses are on the ledger."
    )
    done = call(url, admin, "GET", "/queues/queue_podcast/tasks?state=completed")["items"]
    assert len(done) == len(GUESTS), done
    won = next(e for e in events if e["status"] == "claimed")
    return prove(home, command, url, admin, str(won["eventId"]))


def wait_for(path: Path, server: subprocess.Popen[bytes]) -> dict[str, str]:
    """The server says when it answers; until then, wait for its word."""
    deadline = time.monotonic() + 30
    while not path.exists():
        if server.poll() is not None or time.monotonic() > deadline:
            sys.exit("the server did not start: " + path.with_name("server.log").read_text())
        time.sleep(0.05)
    return dict(json.loads(path.read_text()))


def start_agent(url: str, admin: str, workspace: str, name: str, hang: Path) -> subprocess.Popen[str]:
    card = {
        "name": name,
        "description": "Finds and summarizes",
        "url": f"https://{name}.example/a2a",
        "version": "1.0.0",
    }
    body = {"workspaceId": workspace, "agentCard": {**card, "skills": [], "capabilities": {}}, "issueKey": True}
    agent = call(url, admin, "POST", "/agents/register-card", body)
    call(url, admin, "POST", f"/roles/role_researcher/agents/{agent['agentId']}")
    arguments = [sys.executable, __file__, "agent", name, url, str(agent["agentId"])]
    environment = {**os.environ, "REDKEY_KEY": str(agent["apiKey"]), "REDKEY_DEMO_HANG": str(hang)}
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env=environment)


def follow(agents: list[subprocess.Popen[str]]) -> list[dict[str, str]]:
    """Show the race until the agents are done; the one that hangs is killed, and its task moves on."""
    events: list[dict[str, str]] = []
    names: dict[str, str] = {}
    waiting = selectors.DefaultSelector()
    for agent in agents:
        waiting.register(agent.stdout, selectors.EVENT_READ, agent)
    killed = False
    while waiting.get_map():
        for key, _ in waiting.select(timeout=1):
            line = key.fileobj.readline()
            if line:
                events.append(show(line, names))
                if events[-1]["status"] == "claimed" and GUESTS[2] in line and not killed:
                    killed = True
                    key.data.kill()
                    print(
                        f"  {events[-1]['agent']:6} is killed while it holds it; its {LEASE_SECONDS} s lease runs out"
                    )
            else:
                waiting.unregister(key.fileobj)
    for agent in agents:
        agent.wait(timeout=20)
        agent.stdout.close()
    return events


def prove(home: Path, command: list[str], url: str, admin: str, event_id: str) -> int:
    """A receipt leaves the server, and stands on its own."""
    request = urllib.request.Request(
        f"{url}/events/{event_id}/receipt?format=proof", headers={"Authorization": f"Bearer {admin}"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        receipt = answer.read()
    (home / "receipt.json").write_bytes(receipt)
    (home / "tampered.json").write_bytes(receipt.replace(b"task.claimed", b"task.started", 1))
    key = call(url, admin, "GET", "/checkpoints/latest")["keys"][0]
    print("\nA receipt of one win, verified offline with nothing but the file and the log's public key:", flush=True)
    good = subprocess.run([*command, "receipt", "verify", home / "receipt.json", "--key", key], check=False)
    print("\nThe same receipt with one word changed:", flush=True)
    bad = subprocess.run([*command, "receipt", "verify", home / "tampered.json", "--key", key], check=False)
    return 0 if good.returncode == 0 and bad.returncode == 1 else 1


if __name__ == "__main__":
    if len(sys.argv) == 5 and sys.argv[1] == "agent":
        work(sys.argv[2], sys.argv[3], os.environ["REDKEY_KEY"], sys.argv[4])
    else:
        sys.exit(main())
