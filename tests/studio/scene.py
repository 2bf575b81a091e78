"""A workspace with something to see on every page of the Studio: races, a run, an approval, a block, failures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from redkey.client import RedKey


def _step(name: str, title: str, role: str, output: str, *after: str) -> dict[str, Any]:
    criteria = [f"There is a {output}"]
    return {
        "id": name,
        "title": title,
        "role": role,
        "dependsOn": list(after),
        "outputs": [output],
        "completionCriteria": criteria,
    }


PLAN: dict[str, Any] = {
    "version": "1.0",
    "name": "podcast-episode",
    "roles": {
        name: {"description": f"The {name} of the show."} for name in ("producer", "researcher", "writer", "editor")
    },
    "tasks": [
        _step("intake", "Summarise guest and topic", "producer", "brief"),
        _step("guest", "Research the guest", "researcher", "facts", "intake"),
        _step("market", "Research the market", "researcher", "figures", "intake"),
        _step("script", "Write the script", "writer", "script", "guest", "market"),
        {**_step("edit", "Edit the script", "editor", "final", "script"), "approvalGate": True},
    ],
    "policies": {"maxParallelTasks": 4, "retry": {"maxAttempts": 2, "onFailure": "reopen"}},
}
SCRIPT_MARKDOWN = "# Cold open\n\nWelcome back.\n\n- first topic\n- second topic\n\n```\n<b>not markup</b>\n```\n"


@dataclass
class Held:
    """A task in the hands of an agent, which acts with its own key."""

    rk: RedKey
    claim_id: str

    def complete(self, **more: Any) -> None:
        self.rk.claims.complete(self.claim_id, **more)

    def fail(self, reason: str) -> None:
        self.rk.claims.fail(self.claim_id, reason=reason)

    def block(self, reason: str, **more: Any) -> None:
        self.rk.claims.block(self.claim_id, reason=reason, blocker_type="ambiguity", **more)

    def leave(self, name: str, text: str, media_type: str) -> None:
        """Hand in an artifact."""
        self.rk.claims.add_artifact(self.claim_id, name, content=text, media_type=media_type)


class Scene:
    """What was made, by name."""

    def __init__(self, rk: RedKey) -> None:
        self.rk = rk
        self._keys: dict[str, str] = {}
        self._clients: dict[str, RedKey] = {}
        self.workspace_id = next(iter(rk.workspaces.list())).workspace_id
        self.queue = rk.queues.create(name="studio").queue_id
        self.agents: dict[str, str] = {}
        self.tasks: dict[str, str] = {}

    def agent(self, name: str, *roles: str) -> str:
        """Register an agent with these roles."""
        card = {"name": name, "description": f"{name} works here.", "version": "1", "skills": []}
        made = self.rk.agents.register(card=card, issue_key=True)
        agent_id, self._keys[name] = made.agent_id, made.api_key
        for role in roles:
            if f"role_{role}" not in {one.id for one in self.rk.roles.list()}:
                self.rk.roles.create(name=role)
            self.rk.roles.grant(f"role_{role}", agent_id)
        self.agents[name] = agent_id
        return agent_id

    def task(self, title: str, **more: Any) -> str:
        """Create a task."""
        self.tasks[title] = self.rk.tasks.create(self.queue, title=title, **more).task_id
        return self.tasks[title]

    def acting(self, name: str) -> RedKey:
        """The SDK with an agent's own key."""
        if name not in self._clients:
            self._clients[name] = RedKey(url=self.rk.settings.shown_url, api_key=self._keys[name])
        return self._clients[name]

    def close(self) -> None:
        """Close the connections of the agents."""
        for client in self._clients.values():
            client.close()

    def hold(self, task_id: str, name: str) -> Held:
        """Claim and start a task as an agent."""
        rk = self.acting(name)
        claim = rk.tasks.claim(task_id, agent_id=self.agents[name])
        rk.claims.start(claim.claim_id)
        return Held(rk, claim.claim_id)


def build(rk: RedKey) -> Scene:
    """Build the whole scene."""
    scene = Scene(rk)
    for name, role in (("ada", "researcher"), ("bob", "researcher"), ("cleo", "writer"), ("dan", "editor")):
        scene.agent(name, role)
    scene.agent("eve", "producer", "researcher")
    _races(scene)
    _run(scene)
    working = scene.task(
        "Compare three vector stores", required_roles=["role_researcher"], description="Latency and price."
    )
    scene.hold(working, "ada")
    blocked = scene.task("Book a studio", required_roles=["role_researcher"], description="For two hours.")
    scene.hold(blocked, "bob").block("Which city?", suggested_resolution="Name a city.")
    failed = scene.task("Transcribe episode 12", required_roles=["role_writer"], retry={"max_attempts": 1})
    scene.hold(failed, "cleo").fail("The audio file is empty.")
    for number in range(6):
        scene.task(f"Clip {number + 1} for social media", required_roles=["role_writer"])
    return scene


def _races(scene: Scene) -> None:
    """Three researchers ask for the same tasks; one wins each. A writer asks too, once, and may not."""
    names = ["ada", "bob", "eve"]
    for number in range(8):
        task = scene.task(f"Fact check {number + 1}", required_roles=["role_researcher"])
        order = names[number % 3 :] + names[: number % 3]
        if number == 0:
            scene.acting("cleo").tasks.claim(task, agent_id=scene.agents["cleo"])
        claims = {name: scene.acting(name).tasks.claim(task, agent_id=scene.agents[name]) for name in order}
        name, won = next((name, claim) for name, claim in claims.items() if claim.status == "claimed")
        Held(scene.acting(name), won.claim_id).complete(
            summary="Checked twice.", output={"confirmed": True}, cost_usd=0.02
        )


def _run(scene: Scene) -> None:
    """A run up to its approval."""
    rk = scene.rk
    run = rk.workflows.start(scene.queue, plan=PLAN)
    scene.tasks["run"] = run.workflow_id
    workers = {"producer": "eve", "researcher": "ada", "writer": "cleo", "editor": "dan"}
    for _ in PLAN["tasks"]:
        state = rk.workflows.state(run.workflow_id)
        step = next(one for one in state.tasks if one.state == "available")
        held = scene.hold(step.task_id, workers[step.role.removeprefix("role_")])
        for output in step.outputs:
            if output in ("script", "final"):
                held.leave(output, SCRIPT_MARKDOWN, "text/markdown")
            else:
                held.leave(output, f"{output} of the episode", "text/plain")
        held.complete(summary=f"{step.title}: done.", cost_usd=0.11)
    scene.tasks["edit"] = next(
        one.task_id for one in rk.workflows.state(run.workflow_id).tasks if one.plan_task_id == "edit"
    )
