"""Choose an agent's executor: the one that its spec names, or the first available one of several.

The fleet file or the options choose it, never the Agent Card, which is a closed format. The card provides the model.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from redkey.errors import ConfigRefused
from redkey.runner.executors.command import CommandExecutor, files_left_behind, placed_command
from redkey.runner.executors.port import Executor, Terms
from redkey.runner.executors.python import PythonExecutor
from redkey.runner.sandbox import Bubblewrap, Container, Sandbox
from redkey.wire.card import AgentCard

if TYPE_CHECKING:
    from redkey.runner.spec import Spec

_log = logging.getLogger("redkey.runner")
# Error codes that mean "not available on this machine". All others are mistakes in the spec.
_ABSENT: Final = frozenset({"program_missing", "key_missing", "extra_missing", "function_missing", "server_missing"})
Build = Callable[["Spec", AgentCard | str], Executor]


def choose(spec: Spec, who: AgentCard | str) -> tuple[str, Executor]:
    """Return the executor of a spec and its name; ConfigRefused lists everything that is missing."""
    missing = []
    for name in spec.called:
        try:
            return name, _BUILDS[name](spec, who)
        except ConfigRefused as refused:
            if len(spec.called) == 1 or refused.code not in _ABSENT:
                raise
            missing.append(f"{name}: {refused.message}")
    raise ConfigRefused("none of the executors is available: " + "; ".join(missing), code="executor_missing")


def _exec(spec: Spec, who: AgentCard | str) -> Executor:
    command: str | Sequence[str] = spec.exec or ""
    here = Path.cwd()
    if spec.workdir is None and not spec.repositories:
        command = placed_command(command, here)
        for name in files_left_behind(command, here):
            text = "each task has a directory of its own, in which there is no %s: write %s"
            _log.warning(text, name, here / name)
    return CommandExecutor(command, terms_of(spec))


def _python(spec: Spec, who: AgentCard | str) -> Executor:
    return PythonExecutor(spec.python or "", terms_of(spec), path=spec.python_path)


def _a2a(spec: Spec, who: AgentCard | str) -> Executor:
    from redkey.runner.executors.a2a import A2aExecutor
    from redkey.runner.executors.a2a_login import Login

    login = Login.read(spec.a2a or "", spec.a2a_headers, spec.a2a_oauth, os.environ)
    return A2aExecutor(spec.a2a or "", login=login, kept=Path(spec.work) / "a2a", limits=spec.limits)


def _anthropic(spec: Spec, who: AgentCard | str) -> Executor:
    from redkey.runner.executors.anthropic import AnthropicExecutor

    return AnthropicExecutor(model_of(who), terms_of(spec))


def _openai(spec: Spec, who: AgentCard | str) -> Executor:
    from redkey.runner.executors.openai import OpenAiExecutor, answers

    executor = OpenAiExecutor(spec.openai or "", model_of(who), terms_of(spec))
    if len(spec.called) > 1 and not answers(spec.openai or ""):
        raise ConfigRefused(f"no model server answers at {spec.openai}", code="server_missing")
    return executor


def _headless(name: str) -> Build:
    def build(spec: Spec, who: AgentCard | str) -> Executor:
        from redkey.runner.executors.claude_code import ClaudeCode
        from redkey.runner.executors.codex import Codex
        from redkey.runner.executors.gemini import Gemini
        from redkey.runner.executors.headless import Headless, HeadlessExecutor

        kinds: dict[str, type[Headless]] = {"claude-code": ClaudeCode, "codex": Codex, "gemini": Gemini}
        kind = kinds[name]()
        if spec.sandbox == "offline":
            text = f"{kind.program} calls its model over the network: use --sandbox online"
            raise ConfigRefused(text, code="sandbox_offline")
        return HeadlessExecutor(kind, model_of(who), terms_of(spec, kind.settings))

    return build


def terms_of(spec: Spec, settings: Sequence[str] = ()) -> Terms:
    """Return the limits and permissions of a spec's executor; `settings` as in `sandbox_of`."""
    return Terms(
        allowed=spec.allowed,
        pass_on=spec.env,
        limits=spec.limits,
        patience_seconds=spec.lease_seconds,
        sandbox=sandbox_of(spec, settings),
    )


def sandbox_of(spec: Spec, settings: Sequence[str] = ()) -> Sandbox | None:
    """Return the sandbox of a spec; `settings` are paths in the home directory that the program writes."""
    if spec.sandbox is None:
        return None
    work = Path(spec.work)
    hidden = [work, *([work.parent] if work.parent.name == ".redkey" else [])]
    writable = [*(Path.home() / name for name in settings), *map(Path, spec.sandbox_write)]
    online = spec.sandbox == "online"
    if spec.sandbox_image is not None:
        return Container(spec.sandbox_image, online=online, writable=map(Path, spec.sandbox_write))
    return Bubblewrap(online=online, hidden=hidden, writable=writable)


def model_of(who: AgentCard | str) -> str:
    """Return the model that the agent's card names."""
    if isinstance(who, str):
        raise ConfigRefused("the model of an agent is named by its card: give --card", code="identity_missing")
    return who.identity.model


_BUILDS: Final[Mapping[str, Build]] = {
    "exec": _exec,
    "python": _python,
    "claude-code": _headless("claude-code"),
    "codex": _headless("codex"),
    "gemini": _headless("gemini"),
    "anthropic": _anthropic,
    "openai": _openai,
    "a2a": _a2a,
}
