"""Conversation ownership: one owner, fixed targets, replies first, limited retries, no loops."""

from __future__ import annotations

import asyncio
import sys
from itertools import count
from pathlib import Path
from typing import Any

import orjson
import pytest

from redkey.bus import AsyncBusClient
from redkey.bus.runtime.driver import Driver
from redkey.bus.runtime.events import AgentsUpdated, Message, Peer
from redkey.bus.runtime.model import CommandModel, Model
from redkey.bus.runtime.owner import ROUNDS, Action, AgentRuntime, AskModelAction, ModelPrompt, SendAction, ShowAction
from redkey.errors import BusRefused
from tests.harness.running_bus import Running


def intent(dst: Any, text: str = "go", **more: Any) -> str:
    return orjson.dumps({"intent": "message_agent", "dst": dst, "payload": {"input": {"text": text}}, **more}).decode()


DONE = '{"intent":"task_done","summary":"all done"}'


def owner(*peers: str) -> AgentRuntime:
    numbers = count(1)
    found = AgentRuntime("me", lambda: f"c{next(numbers)}")
    found.agents(AgentsUpdated("s", tuple(Peer(one) for one in ("me", *(peers or ("bob", "cid"))))))
    return found


def reply(src: str, conversation: str = "c1", text: str = "answer", **changes: Any) -> Message:
    fields: dict[str, Any] = {
        "id": f"{src}-{text}", "session_id": "s", "src": src, "dst": "me", "kind": "reply", "text": text,
        "conversation_id": conversation, "conversation_owner": "me", "created_at": "t",
    }  # fmt: skip
    return Message(**{**fields, **changes})


def prompts(actions: list[Action]) -> list[ModelPrompt]:
    return [action.prompt for action in actions if isinstance(action, AskModelAction)]


def sends(actions: list[Action]) -> list[tuple[str, str, str]]:
    return [(action.dst, action.kind, action.text) for action in actions if isinstance(action, SendAction)]


def shows(actions: list[Action]) -> list[str]:
    return [action.text for action in actions if isinstance(action, ShowAction)]


def test_a_mention_begins_a_relay_that_the_model_ends() -> None:
    mine = owner()
    (prompt,) = prompts(mine.local("#bob please look"))
    assert (prompt.role, prompt.targets, prompt.wants_plan) == ("relay", (("bob", "bob"),), False)
    (sent,) = mine.output(intent("bob", "look"))
    assert isinstance(sent, SendAction)
    assert (sent.dst, sent.kind, sent.conversation, sent.reply_to) == ("bob", "user", ("c1", "me"), None)
    (prompt,) = prompts(mine.received(reply("bob")))
    assert (prompt.text, prompt.sender, prompt.task) == ("answer", "bob", "#bob please look")
    assert shows(mine.output(DONE)) == ["all done"]
    assert mine.conversation is None


def test_lines_without_a_mention_go_to_the_model_only() -> None:
    mine = owner()
    assert prompts(mine.local("hello"))[0].role == "answer"
    assert shows(mine.output("hi there")) == ["hi there"]


def test_output_that_is_not_json_is_an_answer_and_ends_the_relay() -> None:
    mine = owner()
    mine.local("#bob please look")
    assert shows(mine.output("I did it myself.")) == ["I did it myself."]
    assert mine.conversation is None
    assert prompts(mine.received(reply("bob"))) == []


def test_targets_are_fixed_when_the_conversation_begins() -> None:
    mine = owner()
    mine.local("#bob please look")
    again = mine.output(intent(["cid"]))
    assert sends(again) == []
    assert "cid" in str(prompts(again)[0].error)
    assert sends(mine.output(intent(["cid", "bob"]))) == [("bob", "user", "go")]
    assert prompts(mine.received(reply("cid"))) == []


def test_invalid_output_is_asked_for_again_at_most_twice() -> None:
    mine = owner()
    mine.local("#bob please look")
    for _ in range(2):
        assert prompts(mine.output('{"intent":"message_agent"}'))[0].error
    ended = mine.output('{"intent":"message_agent"}')
    assert prompts(ended) == []
    assert "usable intent" in shows(ended)[0]
    assert mine.conversation is None


def test_a_plan_is_accepted_once_and_only_if_one_was_wanted() -> None:
    mine = owner()
    assert prompts(mine.local("#bob do it until it works"))[0].wants_plan
    assert shows(mine.output(intent("bob", plan=["try", "check"]))) == ["[>] try\n[ ] check"]
    assert not prompts(mine.received(reply("bob")))[0].wants_plan
    assert shows(mine.output(intent("bob", plan=["other"]))) == []
    mine.received(reply("bob", text="2"))
    assert shows(mine.output(DONE)) == ["[x] try\n[x] check", "all done"]
    mine.local("#bob do it")
    assert shows(mine.output(intent("bob", plan=["no"]))) == []


def test_replies_go_first_and_everything_else_waits_for_the_relay() -> None:
    mine = owner()
    mine.local("#bob #cid go")
    assert mine.local("#cid another") == []
    stranger = reply("bob", "other", "question", kind="user", conversation_owner="bob", id="q")
    assert mine.received(stranger) == []
    mine.output(intent(["bob", "cid"]))
    assert prompts(mine.received(reply("bob", text="1")))[0].text == "1"
    assert mine.received(reply("cid", text="2")) == []
    assert mine.received(reply("bob", text="3")) == []
    assert prompts(mine.output(intent("bob", "more")))[0].text == "2"
    assert prompts(mine.output(intent("bob", "more")))[0].text == "3"
    (prompt,) = prompts(mine.output(DONE))
    assert (prompt.role, prompt.text) == ("relay", "#cid another")
    (prompt,) = prompts(mine.output(DONE))
    assert (prompt.role, prompt.text) == ("answer", "question")


def test_a_user_message_is_answered_in_its_conversation_and_a_reply_never_is() -> None:
    mine = owner()
    asked = reply("bob", "their", "help?", kind="user", conversation_owner="bob")
    mine.received(asked)
    (sent,) = mine.output("here you are")
    assert isinstance(sent, SendAction)
    assert (sent.dst, sent.kind, sent.conversation, sent.reply_to) == ("bob", "reply", ("their", "bob"), asked)
    for kind in ("reply", "control", "system"):
        got = mine.received(reply("bob", "their", kind, kind=kind, conversation_owner="bob"))
        assert prompts(got) == []
        assert sends(got) == []


def test_a_failed_model_ends_its_relay() -> None:
    mine = owner()
    mine.local("#bob go")
    mine.local("and then?")
    actions = mine.failed("no answer")
    assert shows(actions) == ["no answer"]
    assert prompts(actions)[0].text == "and then?"


def ping_pong() -> list[str]:
    """Two agents that always answer each other."""
    ann, bob = owner("bob"), AgentRuntime("bob", lambda: "x")
    said: list[str] = []
    actions: list[tuple[str, Action]] = [("ann", one) for one in ann.local("#bob never stop")]
    numbers = count(1)
    while actions:
        who, action = actions.pop(0)
        mine = ann if who == "ann" else bob
        if isinstance(action, AskModelAction):
            output = intent("bob", "go on") if action.prompt.role == "relay" else "you go on"
            actions += [(who, one) for one in mine.output(output)]
        elif isinstance(action, SendAction):
            src = "me" if who == "ann" else "bob"
            sent = Message(
                id=f"m{next(numbers)}", session_id="s", src=src, dst=action.dst, kind=action.kind, text=action.text,
                conversation_id=action.conversation[0], conversation_owner=action.conversation[1], created_at="t",
                parent_message_id=action.reply_to.id if action.reply_to else None,
            )  # fmt: skip
            mine.sent(sent)
            said.append(f"{src}>{action.dst}:{action.kind}")
            other, name = (bob, "bob") if who == "ann" else (ann, "ann")
            actions += [(name, one) for one in other.received(sent)]
    return said


def test_two_agents_that_always_answer_each_other_stop_at_the_same_message() -> None:
    runs = [ping_pong() for _ in range(3)]
    assert runs[0] == runs[1] == runs[2]
    assert len(runs[0]) == 2 * ROUNDS


def test_user_messages_that_answer_each_other_stop_at_the_limit_of_the_chain() -> None:
    mine = AgentRuntime("me", lambda: "c", chain=4)
    answered = 0
    for number in range(10):
        parent = f"m{number - 1}" if number else None
        one = reply("bob", kind="user", id=f"m{number}", parent_message_id=parent, conversation_owner="bob")
        answered += len(prompts(mine.received(one)))
        mine.output("again")
    assert answered == 4


# On a real bus.


async def _converse(home: Path, session: str, model: Model, worker: Model) -> list[str]:
    shown: list[str] = []
    ended = asyncio.Event()

    def show(one: ShowAction) -> None:
        shown.append(one.text)
        if one.kind == "summary":
            ended.set()

    async with AsyncBusClient(home) as lead, AsyncBusClient(home) as help:
        await lead.join(session, "lead")
        await help.join(session, "worker", "Worker")
        numbers = count(1)
        leading = Driver(lead, AgentRuntime("lead", lambda: f"c{next(numbers)}"), model, show)
        working = Driver(help, AgentRuntime("worker", lambda: "w"), worker, lambda _: None)
        tasks = [asyncio.create_task(one.run()) for one in (leading, working)]
        await leading.say("#Worker what is 6 times 7?")
        async with asyncio.timeout(30):
            await ended.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return shown


def _leads(prompt: ModelPrompt) -> str:
    if prompt.sender is None:
        return intent("worker", "6 * 7?")
    return orjson.dumps({"intent": "task_done", "summary": f"it is {prompt.text}"}).decode()


def test_a_relay_on_a_real_bus_with_callables(running: Running) -> None:
    async def worker(prompt: ModelPrompt) -> str:
        return "42"

    assert asyncio.run(_converse(running.home, running.session(), _leads, worker)) == ["-> Worker: 6 * 7?", "it is 42"]


def test_a_relay_on_a_real_bus_with_a_command(running: Running) -> None:
    program = "import json, sys; print(len(json.load(sys.stdin)['text']))"
    worker = CommandModel([sys.executable, "-c", program])
    assert asyncio.run(_converse(running.home, running.session(), _leads, worker)) == ["-> Worker: 6 * 7?", "it is 6"]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["/nonexistent/program"], "cannot be run"),
        ([sys.executable, "-c", "import sys; sys.exit('broken')"], "broken"),
        ([sys.executable, "-c", "import time; time.sleep(60)"], "did not answer"),
        ([sys.executable, "-c", "print('x' * 2**21)"], "more than"),
    ],
)
def test_a_failing_command_gives_a_clear_error(command: list[str], message: str) -> None:
    with pytest.raises(BusRefused, match=message):
        asyncio.run(CommandModel(command, seconds=1.0 if "sleep" in command[-1] else 30)(ModelPrompt("answer", "hi")))


def test_a_follow_up_by_another_agent_is_not_answered() -> None:
    mine = owner()
    first = reply("bob", "talk", "do it", kind="user", conversation_owner="bob")
    assert len(prompts(mine.received(first))) == 1
    assert sends(mine.output("done")) == [("bob", "reply", "done")]
    for stranger in (
        reply("cid", "talk", "and this", kind="user", conversation_owner="bob"),
        reply("cid", "talk", "mine now", kind="user", conversation_owner="cid"),
    ):
        actions = mine.received(stranger)
        assert prompts(actions) == []
        assert shows(actions) == ["cid follows up in a conversation of bob; not answered"]
    # Its owner may.
    again = reply("bob", "talk", "again", kind="user", conversation_owner="bob")
    assert len(prompts(mine.received(again))) == 1
