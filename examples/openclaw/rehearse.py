"""Rehearse the episode without a model: agents call `/tools/invoke` where a model would call tools.

    python3 rehearse.py plan.json --guest "Lena Okafor" [--gateway URL ...]

Gateways are given by URL and share the token OPENCLAW_GATEWAY_TOKEN. Every gateway has agents of all four roles, so
with two gateways, two agents compete for each task and one wins. The script only needs the standard library.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

ROLES = ("producer", "researcher", "writer", "reviewer")
printing = threading.Lock()


def say(words: str) -> None:
    with printing:
        print(words, flush=True)


class NoAnswer(Exception):
    """A gateway is not reachable, or refused a call."""


def invoke(gateway: str, agent: str, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool as this agent of a gateway, and return its answer."""
    body = json.dumps({"tool": tool, "agentId": agent, "args": arguments}).encode()
    token = os.environ["OPENCLAW_GATEWAY_TOKEN"]
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{gateway}/tools/invoke", body, headers)
    try:
        with urllib.request.urlopen(request, timeout=120) as reply:
            return dict(json.load(reply)["result"]["details"])
    except urllib.error.HTTPError as refused:
        raise NoAnswer(f"{gateway} refused {tool}: {refused.read().decode()}") from None
    except OSError as failure:
        raise NoAnswer(f"no gateway answers at {gateway}: {failure}") from None


def work(gateway: str, agent: str, ended: threading.Event) -> None:
    """Claim, work and complete until the episode is done or the gateway is not reachable."""
    try:
        while not ended.is_set():
            do_next(gateway, agent, ended)
    except NoAnswer as gone:
        say(str(gone))


def do_next(gateway: str, agent: str, ended: threading.Event) -> None:
    """Do one task, if there is one for this agent: claim it, report progress, complete it."""
    claim = invoke(gateway, agent, "redkey_claim_next", waitSeconds=2)["claim"]
    if claim["status"] != "claimed":
        return
    task, before = claim["task"], [one["name"] for one in claim.get("upstream", [])]
    say(f"{gateway} {agent}: {task['title']}" + (f" (from {', '.join(before)})" if before else ""))
    invoke(gateway, agent, "redkey_progress", claimId=claim["claimId"], text="Nearly there.", percent=80)
    guest = task["workflowInput"]["guest"]
    output = {name: f"# {name}\n\nWritten by the {agent}, about {guest}.\n" for name in task["outputs"]}
    done = invoke(gateway, agent, "redkey_complete", claimId=claim["claimId"], output=output)["task"]
    if task["planTaskId"] == "review_script":
        say(f"The host decides now: redkey gate approve {done['gateId']}")
        ended.set()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", type=Path)
    parser.add_argument("--guest", required=True)
    parser.add_argument("--gateway", action="append", default=None)
    asked = parser.parse_args()
    gateways = asked.gateway or ["http://127.0.0.1:18790"]
    plan = json.loads(asked.plan.read_text(encoding="utf-8"))
    try:
        started = invoke(gateways[0], "producer", "redkey_start_plan", plan=plan, input={"guest": asked.guest})["plan"]
    except NoAnswer as refused:
        sys.exit(str(refused))
    say(f"started {started['workflowId']}")
    ended = threading.Event()
    workers = [threading.Thread(target=work, args=(one, role, ended)) for one in gateways for role in ROLES]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if not ended.is_set():
        sys.exit("The episode is not done: start a gateway and let its agents work the queue.")


if __name__ == "__main__":
    main()
