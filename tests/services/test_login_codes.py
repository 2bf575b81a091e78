"""A login code is valid once and for ten minutes."""

from __future__ import annotations

from redkey.commands.actor import Actor
from redkey.services.keys import Principal
from redkey.services.login_codes import LoginCodes

TEN_MINUTES = 600.0
PRINCIPAL = Principal("public", "topic", b"", Actor("wk_1", "key_1", frozenset({"admin"})), 0.0)


class Clock:
    seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def test_a_code_is_valid_once() -> None:
    codes = LoginCodes(Clock())
    first, second = codes.make(PRINCIPAL), codes.make(PRINCIPAL)
    assert first != second
    assert codes.take(first) == ("public", "key_1")
    assert codes.take(first) is None
    assert codes.take("unknown") is None
    assert codes.take(second) == ("public", "key_1")


def test_a_code_is_valid_for_ten_minutes() -> None:
    clock = Clock()
    codes = LoginCodes(clock)
    early, late = codes.make(PRINCIPAL), codes.make(PRINCIPAL)
    clock.seconds += TEN_MINUTES - 1
    assert codes.take(early) is not None
    clock.seconds += 1
    assert codes.take(late) is None
