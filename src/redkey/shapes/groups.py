"""The command groups of declared operations, read from the source text of this package.

Importing the shapes takes longer than everything else that `redkey --help` does; reading the text takes a millisecond
or two.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

_PURPOSE = re.compile(r'"""(.*?)(?:"""|$)', re.MULTILINE)
_COMMAND = re.compile(r'^    command="(\w+) ', re.MULTILINE)


@cache
def command_groups() -> Mapping[str, str]:
    """The groups, each with the first line of the module that declares it."""
    groups: dict[str, str] = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        text = path.read_text()
        purpose = _PURPOSE.match(text)
        for group in _COMMAND.findall(text):
            groups.setdefault(group, purpose[1] if purpose else "")
    return groups
