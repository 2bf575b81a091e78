"""Whom a name means: mentions in text, and the targets of an intent within the set its conversation was given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from redkey.bus.runtime.events import Peer

# What Markdown puts around a word, and what may follow one in a sentence.
_WRAPPERS = "*_`~()[]<>\"'"
_FOLLOWING = ".,:;!?"


class Mentions(msgspec.Struct, frozen=True):
    """The agents that a text mentions, and what is wrong with its other mentions."""

    targets: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


def read_mentions(text: str, agents: Iterable[Peer], own: str) -> Mentions:
    """The agents that a text mentions as `#name` (in any case) or `#id`, each once, in the order of the text.

    A mention that means nobody, several agents or oneself is an error: words must not reach somebody else. `##word` is
    the plain word `#word`.
    """
    peers = list(agents)
    targets: dict[str, None] = {}
    errors: dict[str, None] = {}
    for token in text.split():
        bare = token.strip(_WRAPPERS)
        # As it stands first: a name may end in a full stop.
        names = [bare.removeprefix("#"), token.strip(_WRAPPERS + _FOLLOWING).removeprefix("#").strip(_WRAPPERS)]
        if not bare.startswith("#") or names[0].startswith("#") or not names[1]:
            continue
        found = next((ids for name in names if (ids := matches(name, peers))), [])
        if found == [own]:
            errors[f"#{names[1]} is you"] = None
        elif len(found) > 1:
            errors[f"#{names[1]} means {len(found)} agents: {', '.join(f'#{key}' for key in found)}"] = None
        elif not found:
            errors[f"#{names[1]} names no agent here; write ##{names[1]} for the plain word"] = None
        else:
            targets[found[0]] = None
    return Mentions(tuple(targets), tuple(errors))


def plain(text: str) -> str:
    """A text as it is sent: `##word` becomes `#word`."""
    return " ".join("#" + word[2:] if word.startswith("##") else word for word in text.split(" "))


def matches(name: str, peers: Sequence[Peer], *, any_case: bool = False) -> list[str]:
    """The ids that a mention means: an exact id, an exact name, else every name or id that is equal in any case.

    `any_case` gives every agent that the name could mean to a person who reads it.
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
