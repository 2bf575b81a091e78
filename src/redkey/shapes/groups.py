"""The groups of the command line that declared operations name, read off the text of this package.

Importing the shapes takes longer than all else that `redkey --help` does; reading them takes a millisecond or two.
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
    """The groups, each with the purpose of the module that declares it."""
    found: dict[str, str] = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        text = path.read_text()
        purpose = _PURPOSE.match(text)
        for group in _COMMAND.findall(text):
            found.setdefault(group, purpose[1] if purpose else "")
    return found
