"""The settings of a store: facts about the whole of it, each held against the ledger that tells the same.

What no record tells (a witnessed checkpoint's place, the hash of a key that an early version created) is looked at for
its form.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from redkey.errors import ProofRefused, StoreError
from redkey.ledger.note import KEY_BYTES, decode_base64, encode_base64, parse_key
from redkey.readmodel.rows import entity
from redkey.services.fsck.evidence import Evidence
from redkey.services.fsck.report import Report
from redkey.services.fsck.wire_check import WireCheck
from redkey.services.keys import Kept
from redkey.services.log_facts import EPOCH, LOADED, LOG_ID, Log
from redkey.services.signing import SIGNERS, WITNESSED, State

_WORKSPACE, _KEY = "workspace/", "key/"
_NAMES = frozenset({LOG_ID, EPOCH, SIGNERS})
_KINDS = (_WORKSPACE, _KEY, WITNESSED, LOADED)
_SHA256 = re.compile("[0-9a-f]{64}")


class SettingCheck:
    """Looks at the settings first, then at what each topic tells of them, then at what no topic told."""

    def __init__(self, evidence: Evidence, report: Report, settings: Mapping[str, str], topics: Sequence[str]) -> None:
        self._evidence, self._report, self._settings, self._topics = evidence, report, settings, topics
        self._states = self._read_states()
        self._named: set[str] = set()
        # By topic and key id, the hash of each API key.
        self._hashes: dict[str, dict[str, str]] = {}

    @property
    def log(self) -> Log | None:
        """Which log the store says it is."""
        log_id, epoch = self._settings.get(LOG_ID), self._settings.get(EPOCH, "")
        return Log(log_id, int(epoch)) if log_id and _is_number(epoch) else None

    def absent_until(self, topic: str) -> int:
        """Up to which record a topic was loaded without its content."""
        text = self._settings.get(LOADED + topic, "0")
        return int(text) if _is_number(text) else 0

    def run(self) -> None:
        for name, value in self._settings.items():
            kind, slash, key = name.partition("/")
            if name in (LOG_ID, EPOCH) and self.log is None:
                self._wrong(f"the setting {name} is {value[:60]!r}")
            elif kind + slash == _WORKSPACE and value not in self._topics:
                self._wrong(f"the workspace {key} is said to be on topic {value}, which is not there")
            elif kind + slash == _KEY:
                self._check_key(key, value)
            elif kind + slash in (WITNESSED, LOADED) and key not in self._topics:
                self._wrong(f"the setting {name} is about a topic that is not there")
            elif name not in _NAMES and kind + slash not in _KINDS:
                self._wrong(f"the setting {name[:60]!r} is not part of this format")

    def _check_key(self, public_id: str, value: str) -> None:
        try:
            kept = msgspec.json.decode(value, type=Kept)
            row = self._evidence.row(kept.topic, "key", kept.key_id)
            known = row is not None and entity(row).prefix == f"rk_{public_id}"
        except (msgspec.DecodeError, UnicodeDecodeError, StoreError):
            known = False
        if not known:
            self._wrong(f"the setting of the API key {public_id} leads to no key")
        elif not _SHA256.fullmatch(kept.sha256):
            self._wrong(f"the hash of the API key {public_id} is none")
        else:
            self._hashes.setdefault(kept.topic, {})[kept.key_id] = kept.sha256

    def _check_hashes(self, topic: str, wires: WireCheck) -> None:
        """The hash by which a key is known must be the one that was recorded when it was created."""
        unrecorded = 0
        for key_id, found in self._hashes.pop(topic, {}).items():
            sequence, recorded = wires.keys.get(key_id, (0, ""))
            if recorded and not found.startswith(recorded):
                text = f"the hash of the API key {key_id} is not the one that was recorded: its secret was replaced"
                self._report.add("key_hash_replaced", text, topic, sequence)
            unrecorded += not recorded
        if unrecorded:
            text = f"the hashes of {unrecorded} API keys were not recorded when they were created: they are not checked"
            self._report.note("key_hash_unrecorded", text, topic)

    # What a topic tells.

    def check_topic(self, topic: str, wires: WireCheck, *, signed: bool) -> None:
        """Is the topic found by its workspace, and do those sign whom it names? `signed`: in this epoch, that is."""
        found = [name for name, value in self._settings.items() if name.startswith(_WORKSPACE) and value == topic]
        if wires.workspace_id and found != [_WORKSPACE + wires.workspace_id]:
            self._wrong(f"no setting leads to the workspace {wires.workspace_id} alone", topic)
        self._check_hashes(topic, wires)
        terms = {encode_base64(parse_key(text).public_key): term for text, term in wires.terms.items()}
        self._named |= terms.keys()
        for key, term in terms.items():
            told = "active" if term.retired is None else "retired"
            state = self._states.get(key)
            if (state, told) == ("retired", "active") and signed:
                # The store says so first, each topic when it is signed next: a process died in between.
                text = f"the key {key} is retired; the topic records it with its next checkpoint"
                self._report.note("rotation_unfinished", text, topic)
            elif state != told and (state is not None or told == "active") and signed:
                text = f"the key {key} is {told} on the ledger, the store says {state or 'nothing of it'}"
                self._wrong(text, topic)

    def finish(self) -> None:
        """All topics were checked: name the keys that signed once and that no topic knows."""
        for key, state in self._states.items():
            if state == "retired" and key not in self._named:
                self._wrong(f"the store has retired the key {key}, which no ledger names")

    def _read_states(self) -> dict[str, State]:
        text = self._settings.get(SIGNERS)
        try:
            states = msgspec.json.decode(text, type=dict[str, State]) if text else {}
            if all(len(decode_base64(key)) == KEY_BYTES for key in states):
                return states
        except (msgspec.DecodeError, ProofRefused):
            pass
        self._wrong(f"the setting {SIGNERS} does not tell which keys sign")
        return {}

    def _wrong(self, text: str, topic: str = "") -> None:
        self._report.add("setting_wrong", text, topic)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 20
