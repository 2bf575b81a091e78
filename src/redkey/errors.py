"""The error tree. Every error has a stable `code`, a sentence, and where it helps a JSON pointer.

    RedKeyError
    ├── JsonRefused            bytes that are not JSON, or JSON that two parsers could read differently
    ├── WireRefused            JSON that is no valid wire, card or step; carries all findings
    ├── ContractBroken         a contract file of this installation is missing or damaged
    ├── ProofRefused           a note, checkpoint, proof, receipt or mirror page that cannot be read
    ├── KeyRefused             a key or key file that cannot be used
    ├── WitnessRefused         a checkpoint that a witness does not cosign
    ├── WitnessAway            a witness that gives no cosignature at the moment
    ├── NetworkAway            a Hedera network or its mirror gives no answer, or none that decides
    ├── NetworkRefused         a transaction that a Hedera network refused; nothing was recorded
    ├── FetchRefused           an untrusted URL that is not fetched, or has no usable document
    ├── ConfigRefused          a configuration that cannot be used
    ├── CannotListen           an address that cannot be listened on
    ├── TooManySubscribers     more subscribers than the server accepts
    ├── UpgradeNeeded          a ledger with newer rules than this version reads
    ├── RunnerError            an agent cannot be run
    │   ├── PromptRefused      a prompt that cannot be assembled
    │   ├── SkillRefused       a skill that is missing or malformed
    │   ├── MemoryRefused      a memory that cannot be kept or recalled
    │   ├── OutputRefused      an agent's output that the runner does not accept
    │   ├── WorkplaceRefused   a working directory that cannot be created or used
    │   └── StepFailed         an agent that ended without returning an envelope
    │       └── AgentUnavailable  an agent that cannot take any task now
    ├── ClientError            a call of the SDK that failed
    │   ├── CallMisused        a call with arguments that cannot be sent
    │   ├── Unreachable        no answer came; TimedOut when it did not come in time
    │   ├── ReplyRefused       a reply that does not match this API
    │   ├── WorkInterrupted    a handler must stop: its claim or its task has ended
    │   └── ApiError           the server refused: Unauthorized, Forbidden, NotFound, Invalid, Conflict (with
    │                          LeaseLost and AlreadyTerminal), CreditsExhausted, RateLimited, ServerFailed
    ├── BusRefused             a request that the bus refuses
    ├── BusLost                the connection to the bus was lost
    └── LedgerError            the ledger cannot do what was requested
        ├── TreeDamaged        stored Merkle tiles are missing or damaged
        ├── AppendRefused      a record that cannot be appended: its size, topic, sequence or time
        ├── ContentRefused     content that cannot be stored or erased
        ├── BackupRefused      a backup that cannot be taken, or cannot be trusted
        ├── DumpRefused        a dump that cannot be written, or is inconsistent
        ├── CopyRefused        a copy of a ledger that cannot be begun or continued, or differs from its source
        └── StoreError         the store cannot be used
            ├── StoreRefused   a data directory that cannot be opened safely
            ├── StoreMisused   a store used after it was closed, twice at once, or in a forked process
            ├── WriterBusy     another writer has the lock
            ├── CommitInDoubt  the connection was lost during a commit: its outcome is unknown
            ├── StoreFull      no space left; nothing of the unit was stored
            ├── StoreFailed    reading or writing failed; nothing of the unit was stored
            └── StorePoisoned  an fsync failed: the state on disk is unknown, the process must stop

A *finding* is one thing wrong with a document; a refusal carries them all, so that a caller can fix
everything at once. A lost race or a refused claim is a result, never an exception.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal


def pointer(path: Iterable[str | int]) -> str:
    """Write a path of keys and indexes as a JSON pointer (RFC 6901)."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing wrong with a document: a stable code, where (a JSON pointer), and what to do about it."""

    code: str
    pointer: str
    message: str
    severity: Literal["error", "warning"] = "error"

    def as_json(self) -> dict[str, str]:
        return {"code": self.code, "pointer": self.pointer, "message": self.message, "severity": self.severity}


class RedKeyError(Exception):
    """Something RedKey refuses or cannot do."""

    code = "redkey_error"

    def __init__(self, message: str | None = None, *, code: str | None = None, pointer: str = "") -> None:
        self.code = code or type(self).code
        self.pointer = pointer
        self.message = message or (type(self).__doc__ or "").strip().split("\n")[0]
        super().__init__(self.message)

    def findings(self) -> Sequence[Finding]:
        return (Finding(self.code, self.pointer, self.message),)


class JsonRefused(RedKeyError):
    """The bytes are not JSON that every parser reads the same way."""

    code = "json_syntax"


class WireRefused(RedKeyError):
    """The document is valid JSON but not a valid document of its kind."""

    code = "wire_invalid"

    def __init__(self, findings: Sequence[Finding]) -> None:
        self._findings = tuple(findings)
        first = self._findings[0]
        super().__init__(first.message, code=first.code, pointer=first.pointer)

    def findings(self) -> Sequence[Finding]:
        return self._findings


class ContractBroken(RedKeyError):
    """A contract file of this installation is missing or damaged; install RedKey again."""

    code = "contract_broken"


class ProofRefused(RedKeyError):
    """The bytes are not a note, checkpoint, proof, receipt or mirror page that can be read."""

    code = "proof_malformed"


class KeyRefused(RedKeyError):
    """The key cannot be used."""

    code = "key_refused"


class WitnessRefused(RedKeyError):
    """The witness does not cosign this checkpoint."""

    code = "witness_refused"

    def __init__(self, message: str, *, code: str, status: int, size: int | None = None) -> None:
        """`status` is what C2SP tlog-witness answers over HTTP; `size` is the last tree size that was cosigned."""
        super().__init__(message, code=code)
        self.status = status
        self.size = size


class WitnessAway(RedKeyError):
    """The witness gave no cosignature."""

    code = "witness_unreachable"

    def __init__(self, message: str, *, code: str | None = None, for_long: bool = False) -> None:
        """Set `for_long` if a retry soon would fail as well."""
        super().__init__(message, code=code)
        self.for_long = for_long


class NetworkAway(RedKeyError):
    """The Hedera network or its mirror gave no answer; try again later."""

    code = "network_unreachable"


class NetworkRefused(RedKeyError):
    """The Hedera network refused the transaction; nothing was recorded."""

    code = "network_refused"

    def __init__(self, message: str, *, code: str | None = None, status: str = "") -> None:
        """`status` is the network's own response code, such as INVALID_SIGNATURE."""
        super().__init__(message, code=code)
        self.status = status


class FetchRefused(RedKeyError):
    """The document cannot be fetched from this URL."""

    code = "fetch_failed"


class UpgradeNeeded(RedKeyError):
    """The ledger has records with newer rules; a newer RedKey reads them."""

    code = "upgrade_needed"


class ConfigRefused(RedKeyError):
    """The configuration cannot be used."""

    code = "config_refused"


class CannotListen(RedKeyError):
    """The address cannot be listened on."""

    code = "cannot_listen"


class TooManySubscribers(RedKeyError):
    """The server has as many subscribers as it accepts; retry later."""

    code = "too_many_subscribers"


class BusRefused(RedKeyError):
    """The bus refuses the request."""

    code = "bus_refused"


class BusLost(RedKeyError):
    """The connection to the bus was lost."""

    code = "bus_lost"


class RunnerError(RedKeyError):
    """The agent cannot be run."""

    code = "runner_error"


class PromptRefused(RunnerError):
    """The prompt cannot be assembled."""

    code = "prompt_refused"


class SkillRefused(RunnerError):
    """The skill is missing or malformed."""

    code = "skill_refused"


class MemoryRefused(RunnerError):
    """The memory cannot be kept or recalled."""

    code = "memory_refused"


class OutputRefused(RunnerError):
    """The runner does not accept the agent's output."""

    code = "output_refused"


class WorkplaceRefused(RunnerError):
    """The working directory cannot be created or used."""

    code = "workplace_refused"


class StepFailed(RunnerError):
    """The agent ended without returning an envelope."""

    code = "step_failed"


class AgentUnavailable(StepFailed):
    """The agent cannot work now: an outage, or a usage limit of its account that ends at `until` (Unix seconds)."""

    code = "agent_unavailable"

    def __init__(self, message: str, *, code: str | None = None, until: float | None = None) -> None:
        super().__init__(message, code=code)
        self.until = until


class LedgerError(RedKeyError):
    """The ledger cannot do what was requested."""

    code = "ledger_error"


class TreeDamaged(LedgerError):
    """A stored Merkle tile is missing or damaged."""

    code = "tree_damaged"


class AppendRefused(LedgerError):
    """The record cannot be appended; it has no sequence number."""

    code = "append_refused"


class ContentRefused(LedgerError):
    """The content cannot be stored or erased."""

    code = "content_refused"


class BackupRefused(LedgerError):
    """The backup cannot be taken, or cannot be restored as it is."""

    code = "backup_refused"


class DumpRefused(LedgerError):
    """The dump cannot be written, or is inconsistent."""

    code = "dump_refused"


class CopyRefused(LedgerError):
    """The ledger cannot be copied, or the copy differs from its source."""

    code = "copy_refused"


class StoreError(LedgerError):
    """The store cannot be used."""

    code = "store_error"


class StoreRefused(StoreError):
    """The data directory cannot be opened safely."""

    code = "store_refused"


class StoreMisused(StoreError):
    """The store was used in a way it does not allow."""

    code = "store_misused"


class WriterBusy(StoreError):
    """Another writer holds the lock; wait for it, or try again."""

    code = "writer_busy"


class CommitInDoubt(StoreError):
    """The connection was lost during a commit, so its outcome is unknown; retry with the same idempotency key."""

    code = "commit_in_doubt"

    def __init__(self, message: str | None = None, *, code: str | None = None, doubt: object = None) -> None:
        super().__init__(message, code=code)
        # The `Doubt` that the store resolves.
        self.doubt = doubt


class StoreFull(StoreError):
    """No space is left; nothing of the unit was stored. The store works again when there is space."""

    code = "store_full"


class StoreFailed(StoreError):
    """Reading or writing failed; nothing of the unit was stored."""

    code = "store_failed"


class StorePoisoned(StoreError):
    """An fsync failed, so the state on disk is unknown: restart this process."""

    code = "store_poisoned"


class ClientError(RedKeyError):
    """The call failed."""

    code = "client_error"


class CallMisused(ClientError):
    """The call has arguments that cannot be sent."""

    code = "call_misused"


class Unreachable(ClientError):
    """The server did not answer; it is unknown whether it did what was requested."""

    code = "unreachable"


class TimedOut(Unreachable):
    """The server did not answer in time; it is unknown whether it did what was requested."""

    code = "timed_out"


class ReplyRefused(ClientError):
    """The reply does not match this API."""

    code = "reply_refused"


class WorkInterrupted(ClientError):
    """The handler must stop: the claim was lost, the task was cancelled, or the worker is stopping."""

    code = "work_interrupted"


class WorkFailed(ClientError):
    """A task whose result was waited for failed or was cancelled."""

    code = "task_failed"


class ApiError(ClientError):
    """The server refused the request."""

    code = "api_error"

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        advice: str = "",
        errors: Sequence[Finding] = (),
        request_id: str = "",
        retry_after_seconds: float | None = None,
        origin: str = "",
    ) -> None:
        """`errors` lists everything wrong with the request; `request_id` is the id that a proxy gave it.

        `origin` is the server and the source of the key, if the key is the reason.
        """
        whole = detail if detail.endswith((".", "!", "?")) else f"{detail}."
        told = " ".join(part for part in (whole, advice, f"Server: {origin}." if origin else "") if part)
        super().__init__(told, code=code, pointer=errors[0].pointer if errors else "")
        self.origin = origin
        self.status, self.detail, self.advice = status, detail, advice
        self.errors = tuple(errors)
        self.request_id, self.retry_after_seconds = request_id, retry_after_seconds

    def findings(self) -> Sequence[Finding]:
        return self.errors or super().findings()

    def __str__(self) -> str:
        """What is wrong, where, and the next step."""
        named = "".join(f"\n  {one.pointer or '/'}: {one.message} [{one.code}]" for one in self.errors[:10])
        return self.message + named


class Unauthorized(ApiError):
    """The key or token is missing or not valid (401)."""


class CreditsExhausted(ApiError):
    """The workspace has used up its credits (402)."""


class Forbidden(ApiError):
    """The key lacks the needed scope, or the caller may not decide this (403)."""


class NotFound(ApiError):
    """There is no such thing in this workspace (404)."""


class Invalid(ApiError):
    """Something in the request is invalid (400, 413, 415, 422); `errors` lists all of it."""


class Conflict(ApiError):
    """The current state does not allow it; a retry fails as well (409)."""


class LeaseLost(Conflict):
    """The claim no longer holds its task: another agent may have it."""


class AlreadyTerminal(Conflict):
    """The task has ended, and a terminal task does not change."""


class RateLimited(ApiError):
    """The key makes too many requests (429)."""


class ServerFailed(ApiError):
    """The server cannot take the request now (5xx)."""


_BY_CODE: Mapping[str, type[ApiError]] = {"lease_lost": LeaseLost, "already_terminal": AlreadyTerminal}
_BY_STATUS: Mapping[int, type[ApiError]] = {
    400: Invalid,
    401: Unauthorized,
    402: CreditsExhausted,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: Invalid,
    415: Invalid,
    422: Invalid,
    429: RateLimited,
}


def api_error_type(status: int, code: str) -> type[ApiError]:
    """Return the class of a refusal, by its code, else by its status."""
    return _BY_CODE.get(code) or _BY_STATUS.get(status) or (ServerFailed if status >= 500 else ApiError)
