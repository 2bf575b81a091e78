"""Every next step that the server can name is a command here."""

from __future__ import annotations

import re
from pathlib import Path

import redkey.readmodel
from redkey.cli.next_step import _COMMANDS, command_for
from redkey.shapes.problem import NextStep

READMODEL = Path(redkey.readmodel.__file__).parent


def _actions() -> set[str]:
    text = (READMODEL / "explain.py").read_text() + (READMODEL / "replies.py").read_text()
    named = re.findall(r'action="(\w+)"', text)
    # The steps after a rejection stand in a table of their own.
    table = text.partition("_AFTER_REJECTION = {")[2].partition("}")[0]
    return {*named, *re.findall(r': "(\w+)"', table), *re.findall(r'_POLL = "(\w+)"', text)}


def test_no_step_of_the_server_is_without_a_command_and_no_command_without_a_step() -> None:
    assert _actions() == set(_COMMANDS)


def test_a_step_is_filled_in_and_a_newer_servers_words_stay() -> None:
    assert command_for(NextStep(action="retry", task_id="task_1")) == "redkey task retry task_1"
    assert command_for(NextStep(action="dance_a_jig")) == "dance a jig"
    assert command_for(NextStep(action="none")) == ""
