"""How an agent is to be run, as it is written down: options of `redkey run`, or a fleet file of several agents.

A fleet file is TOML: a table `defaults`, and an `[agents.NAME]` for each, whose settings go before the defaults.
Unknown settings are refused, because a misspelt limit protects nobody. Paths are relative to the file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from redkey.errors import ConfigRefused, JsonRefused, RedKeyError
from redkey.runner.agent import Agent, Habits
from redkey.runner.contracts import Contracts
from redkey.runner.cost import PriceTable, price_table
from redkey.runner.evaluate import CommandEvaluator, Evaluator
from redkey.runner.executors.command import CommandExecutor
from redkey.runner.executors.port import Executor
from redkey.runner.executors.python import PythonExecutor
from redkey.runner.memory.port import Memories
from redkey.runner.process import Limits
from redkey.runner.skills import SHARED, resolve
from redkey.runner.workplace import Workplace
from redkey.wire.card import AgentCard, read_card
from redkey.wire.decode import decode

Count = Annotated[int, msgspec.Meta(ge=1)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]
_PATHS = ("card", "persona", "work", "workdir", "prices")
_PATH_LISTS = ("skills_dirs", "contracts_dirs", "python_path")


class Spec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One agent: who it is, where it works, how it is called."""

    queue: str
    # An Agent Card, or a file of prose for an agent that has none yet; then it needs a name.
    card: str | None = None
    persona: str | None = None
    name: Annotated[str, msgspec.Meta(pattern="^[a-z0-9][a-z0-9._-]{0,31}$")] | None = None
    roles: tuple[str, ...] = ()
    # Exactly one of these says how it is called.
    exec: str | tuple[str, ...] | None = None
    python: str | None = None
    anthropic: bool = False
    a2a: str | None = None
    python_path: tuple[str, ...] = ()
    # A program, or anthropic:MODEL.
    evaluator: str | None = None
    skills: tuple[str, ...] = ()
    skills_dirs: tuple[str, ...] = ()
    shared_skills: tuple[str, ...] = SHARED
    contracts_dirs: tuple[str, ...] = ()
    prices: str | None = None
    # Where places, clones and memories are kept; and a directory that all tasks share in place of a place for each.
    work: str = ".redkey/runner"
    workdir: str | None = None
    # Prefixes of repository URLs that briefs may name; without any, no worktrees.
    repositories: tuple[str, ...] = ()
    # Names of variables that the agent's program gets beside the usual ones.
    env: tuple[str, ...] = ()
    memory: Annotated[str, msgspec.Meta(pattern="^(auto|words|off)$")] = "auto"
    tries: Count = 2
    concurrency: Count = 1
    lease_seconds: Annotated[int, msgspec.Meta(ge=5, le=86400)] = 60
    limit_seconds: Seconds = 3600.0
    limit_output_bytes: Count = 16 * 1024 * 1024
    grace_seconds: Seconds = 5.0
    budget_tokens: Count | None = None
    inbox_seconds: Seconds = 15.0

    def __post_init__(self) -> None:
        called = [self.exec is not None, self.python is not None, self.anthropic, self.a2a is not None]
        if sum(called) != 1:
            raise ConfigRefused("an agent is called by one of exec, python, anthropic and a2a", code="executor_missing")
        if (self.card is None) == (self.persona is None):
            raise ConfigRefused("an agent has a card, or a persona where it has none yet", code="identity_missing")
        if self.persona is not None and self.name is None:
            raise ConfigRefused("an agent with a persona needs a name", code="identity_missing")

    @property
    def limits(self) -> Limits:
        return Limits(
            seconds=self.limit_seconds, output_bytes=self.limit_output_bytes, grace_seconds=self.grace_seconds
        )


def read_spec(settings: Mapping[str, Any]) -> Spec:
    """The spec in a table of settings; ConfigRefused says which is wrong."""
    try:
        return msgspec.convert(dict(settings), Spec)
    except msgspec.ValidationError as cause:
        raise ConfigRefused(f"the agent's settings are wrong: {cause}") from cause


def read_fleet(path: Path) -> dict[str, Spec]:
    """The agents of a fleet file by name."""
    try:
        value = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as cause:
        raise ConfigRefused(f"{path} cannot be read: {cause}") from cause
    except tomllib.TOMLDecodeError as cause:
        raise ConfigRefused(f"{path} is not TOML: {cause}") from cause
    unknown = value.keys() - {"defaults", "agents"}
    agents = value.get("agents")
    if unknown or not isinstance(agents, dict) or not agents:
        raise ConfigRefused(f"{path}: a fleet file has [defaults] and [agents.NAME] tables, and nothing else")
    fleet: dict[str, Spec] = {}
    for name, settings in agents.items():
        try:
            fleet[name] = read_spec(_placed({**value.get("defaults", {}), **settings}, path.resolve().parent))
        except (ConfigRefused, TypeError) as refused:
            raise ConfigRefused(f"{path}: agents.{name}: {refused}") from refused
    return fleet


def _placed(settings: dict[str, Any], directory: Path) -> dict[str, Any]:
    for name in _PATHS:
        if isinstance(settings.get(name), str):
            settings[name] = str(directory / settings[name])
    for name in _PATH_LISTS:
        if isinstance(settings.get(name), list):
            settings[name] = [str(directory / one) for one in settings[name]]
    return settings


def load_card(path: str | Path) -> AgentCard:
    """The Agent Card in a file."""
    try:
        return read_card(decode(Path(path).read_bytes()))
    except OSError as cause:
        raise ConfigRefused(f"{path} cannot be read: {cause.strerror}") from cause
    except (JsonRefused, RedKeyError) as refused:
        raise ConfigRefused(f"{path}: {refused.pointer or '/'}: {refused.message}", code=refused.code) from refused


def identity(spec: Spec) -> tuple[str, AgentCard | str]:
    """Who the agent is: its slug, and its card or persona."""
    if spec.card is not None:
        card = load_card(spec.card)
        return spec.name or card.identity.slug, card
    try:
        return spec.name or "", Path(spec.persona or "").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as cause:
        raise ConfigRefused(f"{spec.persona} cannot be read: {cause}") from cause


def build(spec: Spec) -> Agent:
    """The agent that a spec describes; everything that is missing is told now and not at the first task."""
    slug, who = identity(spec)
    contracts = Contracts([Path(place) for place in spec.contracts_dirs])
    _check_types(who, contracts)
    prices = price_table(Path(spec.prices) if spec.prices else None)
    names = (*spec.skills, *spec.shared_skills)
    work = Path(spec.work)
    workplace = Workplace(
        work, repositories=spec.repositories, shared=Path(spec.workdir).resolve() if spec.workdir else None
    )
    return Agent(
        slug=slug,
        identity=who,
        executor=_executor(spec, who, prices),
        workplace=workplace,
        contracts=contracts,
        prices=prices,
        evaluator=_evaluator(spec, prices),
        memories=memories(spec, work),
        skills=resolve(names, [Path(place) for place in spec.skills_dirs]),
        habits=Habits(tries=spec.tries, budget_tokens=spec.budget_tokens, inbox_seconds=spec.inbox_seconds),
    )


def _check_types(who: AgentCard | str, contracts: Contracts) -> None:
    """What a card says an agent makes must be contracts that are there (seed 000)."""
    for name in who.output_types if isinstance(who, AgentCard) else ():
        if contracts.get(name) is None:
            known = ", ".join(contract.slug for contract in contracts)
            raise ConfigRefused(f"the card names the output contract {name!r}; known: {known}", code="contract_unknown")


def _executor(spec: Spec, who: AgentCard | str, prices: PriceTable) -> Executor:
    if spec.exec is not None:
        return CommandExecutor(spec.exec, pass_on=spec.env, limits=spec.limits)
    if spec.python is not None:
        return PythonExecutor(spec.python, path=spec.python_path, pass_on=spec.env, limits=spec.limits)
    if spec.a2a is not None:
        from redkey.runner.executors.a2a import A2aExecutor

        return A2aExecutor(spec.a2a, limits=spec.limits)
    if isinstance(who, str):
        raise ConfigRefused("the model of an agent stands in its card", code="identity_missing")
    from redkey.runner.executors.anthropic import AnthropicExecutor

    return AnthropicExecutor(who.identity.model, prices=prices, limits=spec.limits)


def _evaluator(spec: Spec, prices: PriceTable) -> Evaluator | None:
    if spec.evaluator is None:
        return None
    if spec.evaluator.startswith("anthropic:"):
        from redkey.runner.executors.anthropic import AnthropicEvaluator

        return AnthropicEvaluator(spec.evaluator.removeprefix("anthropic:"), prices=prices)
    return CommandEvaluator(spec.evaluator, pass_on=spec.env)


def memories(spec: Spec, work: Path) -> Memories | None:
    """What the agent remembers by; nothing when it is off."""
    if spec.memory == "off":
        return None
    from redkey.runner.memory import minilm
    from redkey.runner.memory.sqlite import SqliteMemories

    embedder = minilm.MiniLm() if spec.memory == "auto" and minilm.available() else None
    return SqliteMemories(work / "memory.sqlite", embedder)
