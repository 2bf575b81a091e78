"""Whom a name means: mentions in text, and the targets of an intent within the set its conversation was given."""

from __future__ import annotations

from collections.abc import Iterable

from redkey.bus.runtime.events import Peer

# What Markdown puts around a word, and what may follow one in a sentence.
_WRAPPERS = "*_`~()[]<>\"'"
_FOLLOWING = ".,:;!?"


def mentions(text: str, agents: Iterable[Peer], own: str) -> list[str]:
    """The agents that a text mentions as `#name` or `#id`, each once, in the order of the text; not oneself."""
    peers = [agent for agent in agents if agent.id != own]
    found: dict[str, None] = {}
    for token in text.split():
        # As it stands first: a name may end in a full stop.
        for bare in (token.strip(_WRAPPERS), token.strip(_WRAPPERS + _FOLLOWING)):
            name = bare.removeprefix("#").strip(_WRAPPERS)
            matched = [peer.id for peer in peers if bare.startswith("#") and name == _handle(peer)]
            found.update(dict.fromkeys(matched))
            if matched:
                break
    return list(found)


def _handle(peer: Peer) -> str:
    """How an agent is mentioned: by its name, if that is one word, else by its id."""
    return peer.name if peer.name is not None and len(peer.name.split()) == 1 else peer.id


def resolve(names: Iterable[str], agents: Iterable[Peer], allowed: frozenset[str]) -> list[str]:
    """The ids that names mean: an exact id first, else every agent of that name in any case; only those allowed."""
    peers = list(agents)
    found: dict[str, None] = {}
    for name in names:
        bare = name.strip().lstrip("#")
        if any(peer.id == bare for peer in peers):
            found[bare] = None
        else:
            found.update((peer.id, None) for peer in peers if (peer.name or "").casefold() == bare.casefold())
    return [key for key in found if key in allowed]
