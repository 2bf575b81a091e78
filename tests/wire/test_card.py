"""The Agent Card is read into a typed form, and the reference card is a card."""

from __future__ import annotations

from typing import Any

import pytest

from redkey.errors import WireRefused
from redkey.wire import files
from redkey.wire.card import read_card, validate_card


def test_the_reference_card_is_read_with_its_parts() -> None:
    card = read_card(files.load("definitions/cards/quinn.json"))
    assert card.identity.slug == "quinn"
    assert card.identity.reports_to == "vikram"
    assert len(card.constraints) == 6
    assert [rule.route_to for rule in card.escalation_rules] == ["roles.ba", "mindy"]
    assert card.voice.examples == (card.voice.example,)


def test_a_list_of_examples_is_read() -> None:
    card = read_card(files.load("fixtures/cards/card.valid-example-list.json"))
    assert card.voice.examples == ("Disk 3 of v1.2 replaced, all checks are green.",)


@pytest.mark.parametrize("version", ["1.1", "", None, 1.0, []])
def test_another_version_is_refused_and_the_known_one_is_named(version: Any) -> None:
    (finding,) = validate_card({"card_version": version})
    assert (finding.code, finding.pointer) == ("unknown_version", "/card_version")
    assert "known: 1.0" in finding.message


def test_everything_missing_is_reported_at_once() -> None:
    with pytest.raises(WireRefused) as refused:
        read_card({})
    assert len(refused.value.findings()) == 10
    assert {finding.code for finding in refused.value.findings()} == {"schema_required"}
