"""Resolve names to agents: mentions in a text, and the targets of an intent among those of its conversation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from redkey.bus.runtime.events import Peer

# Characters that Markdown puts around a word, and punctuation after it.
_WRAPPERS = "*_`~()[]<>\"'"
_FOLLOWING = ".,:;!?"


class Mentions(msgspec.Struct, frozen=True):
    """The agents that a text mentions, and the errors of its other mentions."""

    targets: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


def read_mentions(text: str, agents: Iterable[Peer], own: str) -> Mentions:
    """The agents that a text mentions as `#name` (in any case) or `#id`, each once, in the order of the text.

    A mention of no agent, several agents or the sender itself is an error, so a text never reaches the wrong agent.
    `##word` is the plain word `#word`.
    """
    peers = list(agents)
    targets: dict[str, None] = {}
    errors: dict[str, None] = {}
    for token in text.split():
        bare = token.strip(_WRAPPERS)
        # Unchanged first: a name may end with a full stop.
        names = [bare.removeprefix("#"), token.strip(_WRAPPERS + _FOLLOWING).removeprefix("#").strip(_WRAPPERS)]
        if not bare.startswith("#") or names[0].startswith("#") or not names[1]:
            continue
        agent_ids = next((ids for name in names if (ids := matches(name, peers))), [])
        if agent_ids == [own]:
            errors[f"#{names[1]} is you"] = None
        elif len(agent_ids) > 1:
            errors[f"#{names[1]} matches {len(agent_ids)} agents: {', '.join(f'#{key}' for key in agent_ids)}"] = None
        elif not agent_ids:
            errors[f"#{names[1]} names no agent here; write ##{names[1]} for the plain word"] = None
        else:
            targets[agent_ids[0]] = None
    return Mentions(tuple(targets), tuple(errors))


def plain(text: str) -> str:
    """Turn a text into what is sent: `##word` becomes `#word`."""
    return " ".join("#" + word[2:] if word.startswith("##") else word for word in text.split(" "))


def matches(name: str, peers: Sequence[Peer], *, any_case: bool = False) -> list[str]:
    """The ids that a name matches: an exact id, else an exact name, else any name or id ignoring case.

    `any_case` ignores case from the start, to find every agent that a reader could take the name for.
    """
    if not any_case:
        if any(peer.id == name for peer in peers):
            return [name]
        exact = [peer.id for peer in peers if peer.name == name]
        if exact:
            return exact
    folded = name.casefold()
    return [peer.id for peer in peers if folded in ((peer.name or "").casefold(), peer.id.casefold())]


def resolve(names: Iterable[str], agents: Iterable[Peer], allowed: frozenset[str]) -> list[str]:
    """The ids that names match: an exact id first, else every name ignoring case; only those allowed."""
    peers = list(agents)
    agent_ids: dict[str, None] = {}
    for name in names:
        bare = name.strip().lstrip("#")
        if any(peer.id == bare for peer in peers):
            agent_ids[bare] = None
        else:
            agent_ids.update((peer.id, None) for peer in peers if (peer.name or "").casefold() == bare.casefold())
    return [key for key in agent_ids if key in allowed]
