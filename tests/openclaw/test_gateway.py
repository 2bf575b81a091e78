"""The plugin in real OpenClaw gateways, without a model, by `/tools/invoke`.

Opt-in, because OpenClaw is 650 MB: `npm install --ignore-scripts --prefix DIR` of the package.json beside this file,
then `REDKEY_TEST_OPENCLAW=DIR`. OpenClaw needs Node 24.16, by the system or by pip (`requirements-node.lock`).
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from redkey.client import RedKey
from tests.harness.models import Reply, model_server
from tests.harness.ports import lasting_port
from tests.harness.server import Server, serving
from tests.openclaw.conftest import PLUGIN, bundled
from tests.typescript.conftest import clean
from tools.node import ROOT, SDK, find_node

OPENCLAW = os.environ.get("REDKEY_TEST_OPENCLAW", "")
pytestmark = pytest.mark.skipif(not OPENCLAW, reason="OpenClaw is opt-in: REDKEY_TEST_OPENCLAW=DIR with node_modules")

TASKS = 50
LEASE_SECONDS = 10
PATIENCE_SECONDS = 180.0
AGENTS = ("producer", "writer")


EXAMPLE = ROOT / "examples" / "openclaw"
TOKEN = "a token of the tests"
# The bundle for coding agents, installed beside the plugin: tools must appear once.
BUNDLES = [folder for folder in (ROOT / "plugins" / "redkey",) if folder.exists()]


class Gateway:
    """A running gateway with the configuration of the example, in a state directory of its own."""

    def __init__(
        self, folder: Path, server: Server, *plugins: Path, model: str = "", tool_search: bool = False
    ) -> None:
        self.folder, self.port = folder, lasting_port()
        self.url = f"http://127.0.0.1:{self.port}"
        folder.mkdir()
        config = json.loads((EXAMPLE / "openclaw.json").read_text())
        config["gateway"]["port"] = self.port
        config["logging"] = {"file": str(folder / "gateway.log")}
        config["plugins"]["load"]["paths"] = [str(plugin) for plugin in plugins]
        config["plugins"]["entries"]["redkey"]["config"]["leaseSeconds"] = LEASE_SECONDS
        if tool_search:
            del config["tools"]
        if model:
            config["models"] = {"providers": {"loopback": provider(model)}}
            config["agents"]["defaults"] = {"model": {"primary": "loopback/scripted"}}
        (folder / "openclaw.json").write_text(json.dumps(config))
        self.log = folder / "output.log"
        self.environment = environment(
            folder, REDKEY_URL=server.url, REDKEY_API_KEY=server.key, OPENCLAW_GATEWAY_TOKEN=TOKEN
        )
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                openclaw_command("gateway", "run"), env=self.environment, stdout=out, stderr=out
            )

    def invoke(self, tool: str, args: dict[str, Any] | None = None, agent: str = "producer") -> Any:
        """What a tool answers; a refusal is its message."""
        reply = httpx2.post(
            f"{self.url}/tools/invoke",
            json={"tool": f"redkey_{tool}", "args": args or {}, "agentId": agent},
            headers={"authorization": f"Bearer {TOKEN}"},
            timeout=PATIENCE_SECONDS,
        ).json()
        return reply["result"]["details"] if reply["ok"] else reply["error"]["message"]

    def is_ready(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        try:
            return "task" in self.invoke("explain", {"taskId": "none"}).lower()
        except (httpx2.HTTPError, ValueError, KeyError):
            return False

    def stop(self, number: int = signal.SIGTERM) -> None:
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.process.wait(PATIENCE_SECONDS)


def provider(url: str) -> dict[str, Any]:
    """A model server on the loopback, as a provider of OpenClaw's configuration."""
    model = {"id": "scripted", "name": "Scripted", "input": ["text"], "contextWindow": 128_000, "maxTokens": 4096}
    return {"baseUrl": f"{url}/v1", "apiKey": "none", "api": "openai-completions", "models": [model]}


def openclaw_command(*arguments: str) -> list[str]:
    node = find_node((24, 16))
    assert node is not None, "OpenClaw needs Node 24.16: pip install --no-deps -r requirements-node.lock"
    return [node.node, str(Path(OPENCLAW).resolve() / "node_modules" / "openclaw" / "openclaw.mjs"), *arguments]


def environment(folder: Path, **given: str) -> dict[str, str]:
    """Nothing of the user's own OpenClaw."""
    inherited = {key: value for key, value in clean().items() if not key.startswith("OPENCLAW")}
    # `redkey mcp` of the bundle must be found, or its tools would be missing for another reason.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    own = {"HOME": str(folder), "OPENCLAW_STATE_DIR": str(folder), "NO_COLOR": "1", "PATH": path}
    return {**inherited, **own, **given}


def wait_until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, f"it did not happen: {what}"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plugin as it is packed: built, without its sources."""
    folder, node = tmp_path_factory.mktemp("plugin"), find_node()
    assert node is not None
    for name in ("package.json", "openclaw.plugin.json"):
        shutil.copy(PLUGIN / name, folder / name)
    bundled(node, "src/index.ts", folder / "dist" / "index.js")
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("server")) as found:
        yield found


@contextmanager
def running(folder: Path, server: Server, *plugins: Path, **options: Any) -> Iterator[Gateway]:
    gateway = Gateway(folder, server, *plugins, **options)
    try:
        yield gateway
    finally:
        gateway.stop(signal.SIGKILL)


@pytest.mark.parametrize("command", [("validate",), ("build", "--check")], ids=lambda command: command[0])
def test_openclaw_takes_the_plugin(plugin: Path, tmp_path: Path, command: tuple[str, ...]) -> None:
    done = subprocess.run(
        openclaw_command("plugins", *command, "--entry", "./dist/index.js"),
        cwd=plugin,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "is valid" in done.stdout or "up to date" in done.stdout


def test_the_plugin_compiles_against_the_types_of_openclaw(tmp_path: Path) -> None:
    """In place of `host.d.ts`, which is ours."""
    shutil.copytree(PLUGIN / "src", tmp_path / "src", ignore=shutil.ignore_patterns("host.d.ts"))
    config = json.loads((PLUGIN / "tsconfig.json").read_text())
    modules = Path(OPENCLAW).resolve() / "node_modules"
    config |= {"extends": str(SDK / "tsconfig.json"), "include": ["src"]}
    config["compilerOptions"] |= {
        "rootDir": "/",
        "skipLibCheck": True,
        "typeRoots": [str(SDK / "node_modules" / "@types")],
        "paths": {"redkey": [str(SDK / "src" / "index.ts")]},
    }
    (tmp_path / "tsconfig.json").write_text(json.dumps(config))
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "node_modules").symlink_to(modules)
    node = find_node()
    assert node is not None
    command = [node.node, str(SDK / "node_modules" / "typescript7" / "bin" / "tsc"), "-p", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert done.returncode == 0, done.stdout


def test_two_gateways_one_redkey(plugin: Path, server: Server, tmp_path: Path, record_property: Any) -> None:
    with running(tmp_path / "a", server, plugin) as a, running(tmp_path / "b", server, plugin) as b:
        for gateway in (a, b):
            wait_until(gateway.is_ready, f"gateway {gateway.folder.name} answers")
        with RedKey(server.url, server.key) as rk:
            _makes_an_episode(rk, (a, b))
            _fifty_winners(rk, (a, b), record_property)
            _one_of_four_wins(rk, (a, b))
            _refusals(a)
            _killed(rk, a, b, record_property)
            _stopped(rk, b)


def _makes_an_episode(rk: RedKey, gateways: tuple[Gateway, Gateway]) -> None:
    # Registered on start, each agent of each gateway by its card, before any tool was called for it.
    wait_until(lambda: len(list(rk.agents.list(active=True))) == 8, "eight agents are registered")
    assert {agent.framework for agent in rk.agents.list()} == {"openclaw"}
    command = [sys.executable, str(EXAMPLE / "rehearse.py"), str(ROOT / "examples" / "podcast" / "plan.json")]
    command += ["--guest", "Lena Okafor", *(word for gateway in gateways for word in ("--gateway", gateway.url))]
    done = subprocess.run(
        command, env=gateways[0].environment, capture_output=True, text=True, timeout=PATIENCE_SECONDS
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Draft podcast script (from guest_brief, research_packet)" in done.stdout
    (gate,) = rk.gates.list()
    rk.gates.approve(gate.gate_id)
    (run,) = rk.workflows.list()
    assert run.status == "completed"


def _fifty_winners(rk: RedKey, gateways: tuple[Gateway, Gateway], record_property: Any) -> None:
    agents = {agent.agent_id for agent in rk.agents.list()}
    before = len(list(rk.ledger.query(type="task.complete")))
    rk.tasks.create_many("podcast", [{"title": f"Episode {number}"} for number in range(TASKS)])

    def work(gateway: Gateway, agent: str) -> list[str]:
        won = []
        while (claim := gateway.invoke("claim_next", agent=agent)["claim"])["status"] != "no_tasks":
            if claim["status"] == "claimed":
                won.append(claim["task"]["taskId"])
                ended = gateway.invoke("complete", {"claimId": claim["claimId"], "output": agent}, agent)
                assert ended["task"]["status"] == "completed"
        return won

    begun = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(work, gateway, agent) for gateway in gateways for agent in AGENTS]
        won = [job.result() for job in jobs]
    seconds = time.monotonic() - begun
    assert len({task for tasks in won for task in tasks}) == sum(map(len, won)) == TASKS
    completed = list(rk.ledger.query(type="task.complete", limit=500))[before:]
    assert len({event.subject.id for event in completed}) == len(completed) == TASKS
    assert {event.actor.id for event in completed} <= agents, "the ledger names the agents"
    shares = ", ".join(str(len(tasks)) for tasks in won)
    record_property("proven", f"OpenClaw: {TASKS} tasks, {TASKS} winners by two gateways ({shares}) in {seconds:.1f} s")


def _one_of_four_wins(rk: RedKey, gateways: tuple[Gateway, Gateway]) -> None:
    task_id = rk.tasks.create("podcast", title="Race").task_id
    with ThreadPoolExecutor(4) as pool:
        jobs = [
            pool.submit(gateway.invoke, "claim_next", {"taskId": task_id}, agent)
            for gateway in gateways
            for agent in AGENTS
        ]
        claims = [job.result()["claim"] for job in jobs]
    assert sorted(claim["status"] for claim in claims) == ["claimed", "missed", "missed", "missed"]
    assert all("do not try it again" in claim["next"] for claim in claims if claim["status"] == "missed")
    rk.tasks.cancel(task_id)


def _refusals(gateway: Gateway) -> None:
    assert "There is no" in gateway.invoke("claim_next", {"colour": "red"})
    assert "You hold no claim" in gateway.invoke("complete", {"claimId": "clm_none"}, "writer")
    assert "not_found" in gateway.invoke("explain", {"taskId": "task_none"})


def _killed(rk: RedKey, a: Gateway, b: Gateway, record_property: Any) -> None:
    task_id = rk.tasks.create("podcast", title="Left behind").task_id
    assert a.invoke("claim_next")["claim"]["status"] == "claimed"
    begun = time.monotonic()
    a.stop(signal.SIGKILL)
    claim = b.invoke("claim_next", {"waitSeconds": 50})["claim"]
    seconds = time.monotonic() - begun
    assert claim["status"] == "claimed", claim
    assert claim["task"]["taskId"] == task_id
    assert "task.lease_expired" in [event.type for event in rk.tasks.events(task_id)]
    # The last heartbeat came before the kill; what the other gateway needs to claim comes on top.
    assert seconds < LEASE_SECONDS + 5
    b.invoke("complete", {"claimId": claim["claimId"]})
    record_property("proven", f"OpenClaw: a killed gateway's task was claimed by another after {seconds:.1f} s")


def _stopped(rk: RedKey, gateway: Gateway) -> None:
    task_id = rk.tasks.create("podcast", title="Given back").task_id
    assert gateway.invoke("claim_next")["claim"]["status"] == "claimed"
    gateway.stop(signal.SIGTERM)
    assert rk.tasks.get(task_id).state == "available"
    types = [event.type for event in rk.tasks.events(task_id)]
    assert "task.lease_expired" not in types
    assert "was given back" in gateway.log.read_text()


@pytest.mark.parametrize("tool_search", [False, True], ids=["direct", "by tool search"])
def test_a_model_works_the_queue(plugin: Path, tmp_path: Path, tool_search: bool) -> None:
    """One turn of a real agent, told what the example tells it; only the model's words are ours."""

    def call(tool: str, args: dict[str, Any]) -> Reply:
        return Reply(tools=(("tool_call", {"id": tool, "args": args}) if tool_search else (tool, args),))

    turns = [
        call("redkey_claim_next", {"waitSeconds": 30}),
        call("redkey_progress", {"text": "Writing.", "percent": 50}),
        call("redkey_complete", {"output": {"guest_brief": "Lena hosts a show."}, "summary": "Done."}),
        Reply("I wrote the brief."),
    ]
    seen: list[dict[str, Any]] = []

    def answer(number: int, request: dict[str, Any]) -> Reply:
        # Requests without tools are of OpenClaw's own: titles, summaries.
        if not request.get("tools"):
            return Reply("Podcast")
        seen.append(request)
        return turns[min(len(seen), len(turns)) - 1]

    with (
        serving(tmp_path) as server,
        model_server(answer) as model,
        running(tmp_path / "gateway", server, plugin, *BUNDLES, model=model.url, tool_search=tool_search) as gateway,
        RedKey(server.url, server.key) as rk,
    ):
        wait_until(gateway.is_ready, "the gateway answers")
        plan = json.loads((ROOT / "examples" / "podcast" / "plan.json").read_text())
        rk.workflows.start("podcast", plan=plan, input={"guest": "Lena Okafor"})
        done = subprocess.run(
            openclaw_command("agent", "--agent", "producer", "--message", (EXAMPLE / "work.md").read_text()),
            env=gateway.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
        assert done.returncode == 0, done.stdout + done.stderr + gateway.log.read_text()[-3000:]
        (event,) = rk.ledger.query(type="task.complete")
        assert rk.agents.get(event.actor.id).name == f"producer@{gateway_name(gateway)}"
        task = rk.tasks.get(event.subject.id)
        assert [artifact.name for artifact in task.artifacts] == ["guest_brief"]
        assert "I wrote the brief." in done.stdout
    offered = [tool["function"]["name"] for tool in seen[0]["tools"] if "redkey" in tool["function"]["name"]]
    assert sorted(offered) == ([] if tool_search else sorted(tools()))
    # Tool Search lists each tool on a line of the prompt.
    assert all(json.dumps(seen[0]["messages"]).count(f"- {name} (redkey)") == tool_search for name in tools())
    assert "Lena Okafor" in json.dumps(seen[1]["messages"]), "the model saw the task"


def tools() -> list[str]:
    return list(json.loads((PLUGIN / "openclaw.plugin.json").read_text())["contracts"]["tools"])


def gateway_name(gateway: Gateway) -> str:
    return str(json.loads((gateway.folder / "redkey" / "agents.json").read_text())["gateway"])


def test_with_bundle_and_plugin_the_tools_appear_once(plugin: Path, server: Server, tmp_path: Path) -> None:
    if not BUNDLES:
        pytest.skip("there is no bundle in plugins/redkey")
    with running(tmp_path / "both", server, plugin, *BUNDLES) as gateway:
        wait_until(gateway.is_ready, "the gateway answers")
        done = subprocess.run(
            openclaw_command("plugins", "list", "--json"),
            env=gateway.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
        assert done.returncode == 0, done.stderr
        found = [one for one in json.loads(done.stdout)["plugins"] if one["id"] == "redkey"]
        assert len(found) == 1
        assert found[0].get("format", "openclaw") == "openclaw"
