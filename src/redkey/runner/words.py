"""Clean texts of agents before they are recorded: limit their length and refuse secrets, without repeating a secret."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from redkey.errors import Finding
from redkey.ledger.secrets import secret_in
from redkey.runner.mail import Mail
from redkey.wire.lint import SUMMARY_WORDS
from redkey.wire.prose import words
from redkey.wire.step import StepOutput

_REASON_CHARACTERS = 4000


def repeatable(text: str) -> str:
    """Return an agent's text as a reason to record; replace it if it may contain a secret."""
    secret = secret_in(text)
    if secret is not None:
        return f"What was said looks like it holds a secret ({secret}); it is not repeated here."
    return text[:_REASON_CHARACTERS] or "Nothing was said."


def secrets_said(output: StepOutput, mail: Iterable[Mail]) -> list[Finding]:
    """Find secrets in an agent's output and messages. The server checks files, by the rules of their queue."""
    return [
        Finding("secret_detected", pointer, f"this looks like a secret ({secret}); send a reference to it instead")
        for pointer, text in _said(output, mail)
        if (secret := secret_in(text)) is not None
    ]


def _said(output: StepOutput, mail: Iterable[Mail]) -> Iterator[tuple[str, str]]:
    yield "/summary", output.summary
    for index, note in enumerate(output.notes or ()):
        yield f"/notes/{index}", note
    for index, message in enumerate(mail):
        yield f"/outbox/{index}", f"{message.subject}\n{message.body}"


def brief_summary(text: str) -> str:
    """Cut a summary to the number of words that a completion may have."""
    if words(text) <= SUMMARY_WORDS:
        return text
    parts = text.split()
    while words(" ".join(parts)) >= SUMMARY_WORDS:
        parts.pop()
    return " ".join(parts) + " …"
