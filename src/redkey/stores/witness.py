"""The directory of a witness: its key, the logs it trusts, and its last cosigned checkpoints.

    witness.key, witness.pub    the secret (mode 0600) and the verifier key to publish
    logs                        the verifier keys of the logs for which it cosigns, as a key file
    seen/<log>/e<epoch>         the last checkpoint it cosigned, as the log signed it
    evidence/<hash>             requests that contradict a checkpoint that was cosigned before, with that checkpoint

A checkpoint is on disk before its cosignature is returned, and sizes never decrease: the lock is held from the read of
the last checkpoint until the new one is durable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path

from redkey.errors import LedgerError, ProofRefused, WitnessRefused
from redkey.ledger.checkpoint import Checkpoint, open_checkpoint, split_epoch
from redkey.ledger.cosignature import cosign
from redkey.ledger.note import COSIGNATURE, Signature, VerifierKey
from redkey.ledger.signer import Signer
from redkey.ledger.trust import TrustedKey, log_keys, parse_trusted_keys
from redkey.ledger.witness import Request, judge, recognise
from redkey.stores.durable import create_file, locked, replace_file
from redkey.stores.keys import read_key, write_key

EVIDENCE_LIMIT = 1000


class WitnessDirectory:
    """One witness. `seconds` returns the time in whole seconds since the epoch."""

    def __init__(self, directory: Path, seconds: Callable[[], int]) -> None:
        self._directory = directory
        self._seconds = seconds
        self._signer = read_key(directory / "witness.key", COSIGNATURE)

    @property
    def verifier(self) -> VerifierKey:
        """The public key of the witness."""
        return self._signer.verifier

    def trusted(self) -> list[TrustedKey]:
        """Return the log keys that this witness trusts."""
        path = self._directory / "logs"
        return log_keys(parse_trusted_keys(path.read_text())) if path.exists() else []

    def trust(self, keys: Sequence[TrustedKey]) -> None:
        """Trust these log keys from now on, in addition to the others."""
        with locked(self._directory / "lock"):
            known = self.trusted()
            lines = [_line(key) for key in dict.fromkeys((*known, *log_keys(keys)))]
            replace_file(self._directory / "logs", "".join(lines).encode(), 0o644)

    def add_checkpoint(self, request: Request, also_trusted: Sequence[TrustedKey] = ()) -> Signature:
        """Cosign a checkpoint that extends the last one, and store it durably; raise WitnessRefused otherwise."""
        recognise(request, (*self.trusted(), *log_keys(also_trusted)))
        log, epoch = split_epoch(request.checkpoint.origin)
        place = self._place(log)
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(place / "lock"):
            last = self.last(request.checkpoint.origin)
            try:
                judge(request, last and last[0], max(self._epochs(log), default=0))
            except WitnessRefused as refused:
                if refused.code == "split_view" and last:
                    self._keep_evidence(request, last[1])
                raise
            replace_file(place / f"e{epoch}", request.note.encode())
        return cosign(self._signer, request.note.text, self._seconds())

    def last(self, origin: str) -> tuple[Checkpoint, bytes] | None:
        """Return the last cosigned checkpoint of an origin, and its note; None if there is none."""
        log, epoch = split_epoch(origin)
        try:
            note = (self._place(log) / f"e{epoch}").read_bytes()
        except FileNotFoundError:
            return None
        try:
            checkpoint, _ = open_checkpoint(note)
        except ProofRefused as cause:
            text = f"the last checkpoint of {origin} cannot be read back: {cause.message}"
            raise LedgerError(text, code="witness_damaged") from cause
        return checkpoint, note

    def seen(self) -> Iterator[Checkpoint]:
        """Yield the last checkpoint of every origin, sorted by origin."""
        files = sorted((self._directory / "seen").glob("*/e*"))
        yield from sorted(
            (open_checkpoint(path.read_bytes())[0] for path in files), key=lambda checkpoint: checkpoint.origin
        )

    def evidence(self) -> list[Path]:
        """Return the files with evidence of split histories."""
        return sorted((self._directory / "evidence").glob("[0-9a-f]*"))

    def _epochs(self, log: str) -> list[int]:
        return [int(path.name[1:]) for path in self._place(log).glob("e*")]

    def _place(self, log: str) -> Path:
        return self._directory / "seen" / sha256(log.encode()).hexdigest()[:32]

    def _keep_evidence(self, request: Request, last: bytes) -> None:
        folder = self._directory / "evidence"
        folder.mkdir(mode=0o700, exist_ok=True)
        data = request.encode()
        if len(self.evidence()) < EVIDENCE_LIMIT:
            create_file(folder / sha256(data).hexdigest()[:32], b"refused:\n" + data + b"\ncosigned before:\n" + last)


def create_witness(directory: Path, name: str) -> VerifierKey:
    """Create a witness in a directory; raise KeyRefused if it has one already."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    signer = Signer.generate(name, COSIGNATURE)
    write_key(directory / "witness.key", signer)
    replace_file(directory / "witness.pub", f"{signer.verifier}\n".encode(), 0o644)
    return signer.verifier


def _line(key: TrustedKey) -> str:
    return f"{key.key}\n" if key.retired is None else f"{key.key} retired {key.retired}\n"
