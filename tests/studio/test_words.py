"""The words of the page: every event of the catalogue has a verb."""

from __future__ import annotations

import json
import re

from tools.studio import ROOT, SOURCES

CATALOGUE = ROOT / "contracts" / "agent-wire" / "v1.1" / "event-state-map.json"


def test_every_type_of_event_has_a_verb() -> None:
    words = (SOURCES / "src" / "lib" / "words.ts").read_text()
    verbs = re.findall(r'^  "([a-z_.]+)": "[^"]+",$', words, re.MULTILINE)
    assert sorted(verbs) == sorted(json.loads(CATALOGUE.read_text())["events"])
