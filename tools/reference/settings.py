"""The reference of the settings of `redkey serve`, generated from the source of the configuration and its comments."""

from __future__ import annotations

import inspect
import re
from typing import Any

import msgspec

from redkey import config
from redkey.services.keys import KEY_SHAPE
from tools.reference.markdown import table

_INTRO = f"""# Settings

`redkey serve` takes settings from its arguments, then from variables (`{config.PREFIX}PORT`,
`{config.PREFIX}LIMITS_BODY_BYTES`), then from a TOML file (`--config FILE`, `{config.PREFIX}CONFIG`, or
`redkey.toml` in the directory where it is run; `redkey init` writes one), then from these defaults. An unknown setting
is refused. `redkey config show` lists every setting, its value and where it comes from.

`{config.PREFIX}BOOTSTRAP_KEY` sets the first key of a fresh data directory; its format is
`{KEY_SHAPE.replace(": ", "`: ", 1)}.
"""
_FIELD = re.compile(r"    (\w+): (.+?) = (.+)$")
_HEADINGS = {config.Config: "Top level"} | {kind: f"[{name}]" for name, kind in config.TABLES.items()}


def page() -> str:
    """A table of settings for the top level and for each table of the file."""
    return "\n".join([_INTRO, *(_section(kind, title) for kind, title in _HEADINGS.items())])


def _section(kind: type[msgspec.Struct], title: str) -> str:
    comments, rows = _comments(kind), []
    for field in msgspec.structs.fields(kind):
        if isinstance(field.default, msgspec.Struct):
            continue
        rows.append((f"`{field.name}`", _default(field), comments.get(field.name, "")))
    return f"## {title}\n\n{(kind.__doc__ or '').strip()}\n\n" + table(("setting", "default", "meaning"), rows)


def _default(field: Any) -> str:
    value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    if value is None or value in ("", (), {}):
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _comments(kind: type) -> dict[str, str]:
    """The comment lines directly above each field."""
    comments: dict[str, str] = {}
    above: list[str] = []
    for line in inspect.getsource(kind).splitlines():
        if line.strip().startswith("#"):
            above.append(line.strip().removeprefix("#").strip())
            continue
        field = _FIELD.match(line)
        if field is not None and above:
            comments[field[1]] = " ".join(above)
        above = []
    return comments
