"""The settings of a store: facts about the whole store, each compared with the ledger where the ledger has the same.

Settings that no record confirms (a witnessed checkpoint's place, the hash of a key that an early version created) are
checked for their form only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from redkey.errors import ProofRefused, StoreError
from redkey.ledger.note import KEY_BYTES, decode_base64, encode_base64, parse_key
from redkey.readmodel.rows import entity
from redkey.services.anchors import ANCHOR, ANCHORED, wrong_anchor
from redkey.services.fsck.evidence import Evidence
from redkey.services.fsck.report import Report
from redkey.services.fsck.wire_check import WireCheck
from redkey.services.keys import Kept
from redkey.services.log_facts import BUS_HOST, COPYING, EPOCH, LOADED, LOG_ID, Log
from redkey.services.network_fees import FEES
from redkey.services.ordered.messages import BEGINNING, PROJECTED
from redkey.services.people import PEOPLE, PersonPlace
from redkey.services.signing import SIGNERS, WITNESSED, State

_WORKSPACE, _KEY = "workspace/", "key/"
_NAMES = frozenset({LOG_ID, EPOCH, SIGNERS, COPYING, BUS_HOST})
_OF_TOPICS = (WITNESSED, LOADED, ANCHOR, ANCHORED, FEES, PROJECTED)
_KINDS = (_WORKSPACE, _KEY, *_OF_TOPICS, PEOPLE, BEGINNING)
_SHA256 = re.compile("[0-9a-f]{64}")


class SettingCheck:
    """Checks the settings first, then what each topic says of them, then what no topic said."""

    def __init__(self, evidence: Evidence, report: Report, settings: Mapping[str, str], topics: Sequence[str]) -> None:
        self._evidence, self._report, self._settings, self._topics = evidence, report, settings, topics
        self._states = self._read_states()
        self._named: set[str] = set()
        # By topic and key id, the hash of each API key.
        self._hashes: dict[str, dict[str, str]] = {}

    @property
    def log(self) -> Log | None:
        """Return the id of the log."""
        log_id, epoch = self._settings.get(LOG_ID), self._settings.get(EPOCH, "")
        return Log(log_id, int(epoch)) if log_id and _is_number(epoch) else None

    def absent_until(self, topic: str) -> int:
        """Return the record up to which a topic was loaded without its content."""
        text = self._settings.get(LOADED + topic, "0")
        return int(text) if _is_number(text) else 0

    def run(self) -> None:
        for name, value in self._settings.items():
            kind, slash, key = name.partition("/")
            if name in (LOG_ID, EPOCH) and self.log is None:
                self._wrong(f"the setting {name} is {value[:60]!r}")
            elif kind + slash == _WORKSPACE and value not in self._topics:
                self._wrong(f"the workspace {key} has the topic {value}, which is missing")
            elif kind + slash == _KEY:
                self._check_key(key, value)
            elif kind + slash == PEOPLE:
                self._check_people(key, value)
            elif kind + slash in _OF_TOPICS and key not in self._topics:
                self._wrong(f"the setting {name} is about a topic that is missing")
            elif kind + slash in (ANCHOR, ANCHORED, FEES) and (wrong := wrong_anchor(kind + slash, value)):
                self._wrong(f"the setting {name} {wrong}")
            elif name == COPYING and value:
                text = "the store is an unfinished copy; run redkey ledger copy again to finish it"
                self._report.add("copy_unfinished", text)
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
            self._wrong(f"the setting of the API key {public_id} names no key")
        elif not _SHA256.fullmatch(kept.sha256):
            self._wrong(f"the hash of the API key {public_id} is not a hash")
        else:
            self._hashes.setdefault(kept.topic, {})[kept.key_id] = kept.sha256

    def _check_people(self, digest: str, value: str) -> None:
        """Check that each place in the list of an e-mail address is a person's key."""
        try:
            found = msgspec.json.decode(value, type=tuple[PersonPlace, ...])
            rows = [self._evidence.row(place.topic, "key", place.key_id) for place in found]
            known = all(row is not None and entity(row).person for row in rows)
        except (msgspec.DecodeError, UnicodeDecodeError, StoreError):
            known = False
        if not known:
            self._wrong(f"the setting of the e-mail address {digest[:32]} names a key that is not a person's")

    def _check_hashes(self, topic: str, wires: WireCheck) -> None:
        """Check that a key's hash is the one that was recorded when the key was created."""
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

    # Comparing with the topics.

    def check_topic(self, topic: str, wires: WireCheck, *, signed: bool) -> None:
        """Check the topic's workspace and the signers that it names. `signed`: the topic was signed in this epoch."""
        found = [name for name, value in self._settings.items() if name.startswith(_WORKSPACE) and value == topic]
        if wires.workspace_id and found != [_WORKSPACE + wires.workspace_id]:
            self._wrong(f"the topic must have one setting, that of the workspace {wires.workspace_id}", topic)
        self._check_hashes(topic, wires)
        terms = {encode_base64(parse_key(text).public_key): term for text, term in wires.terms.items()}
        self._named |= terms.keys()
        for key, term in terms.items():
            told = "active" if term.retired is None else "retired"
            state = self._states.get(key)
            if (state, told) == ("retired", "active") and signed:
                # The store has it first, each topic with its next signature: a process died in between.
                text = f"the key {key} is retired; the topic records it with its next checkpoint"
                self._report.note("rotation_unfinished", text, topic)
            elif state != told and (state is not None or told == "active") and signed:
                text = f"the key {key} is {told} on the ledger, the store has {state or 'nothing'}"
                self._wrong(text, topic)

    def finish(self) -> None:
        """Report the keys that signed once and that no topic knows, after all topics were checked."""
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
        self._wrong(f"the setting {SIGNERS} does not say which keys sign")
        return {}

    def _wrong(self, text: str, topic: str = "") -> None:
        self._report.add("setting_wrong", text, topic)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 20
