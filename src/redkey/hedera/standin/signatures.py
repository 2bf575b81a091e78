"""A transaction as it arrives, and its signatures: Ed25519, ECDSA (secp256k1), key lists and thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha384

from cryptography.exceptions import InvalidSignature
from google.protobuf.message import DecodeError
from hiero_sdk_python.crypto.public_key import PublicKey
from hiero_sdk_python.hapi.services.basic_types_pb2 import Key, SignaturePair
from hiero_sdk_python.hapi.services.transaction_contents_pb2 import SignedTransaction
from hiero_sdk_python.hapi.services.transaction_pb2 import Transaction, TransactionBody

from redkey.hedera.standin.state import id_of


def is_satisfied(key: Key, body: bytes, pairs: Sequence[SignaturePair]) -> bool:
    """Return whether the signatures over `body` satisfy a key."""
    kind = key.WhichOneof("key")
    if kind == "ed25519":
        return any(_verifies(key, pair.ed25519, body) for pair in pairs if key.ed25519.startswith(pair.pubKeyPrefix))
    if kind == "ECDSA_secp256k1":
        public = key.ECDSA_secp256k1
        return any(_verifies(key, one.ECDSA_secp256k1, body) for one in pairs if public.startswith(one.pubKeyPrefix))
    if kind == "keyList":
        return all(is_satisfied(one, body, pairs) for one in key.keyList.keys)
    if kind == "thresholdKey":
        satisfied = sum(is_satisfied(one, body, pairs) for one in key.thresholdKey.keys.keys)
        return satisfied >= int(key.thresholdKey.threshold)
    return False


def is_empty(key: Key) -> bool:
    """Return whether a key is absent; the network takes an empty key list for none."""
    return key.WhichOneof("key") is None or (key.WhichOneof("key") == "keyList" and not key.keyList.keys)


def _verifies(key: Key, signature: bytes, body: bytes) -> bool:
    if not signature:
        return False
    try:
        PublicKey._from_proto(key).verify(signature, body)
    except (InvalidSignature, ValueError):
        return False
    return True


class Refused(Exception):
    """A transaction fails with this status."""

    def __init__(self, status: str) -> None:
        super().__init__(status)
        self.status = status


class Signed:
    """A transaction as it arrived: its body, and the signatures over it."""

    def __init__(self, transaction: Transaction) -> None:
        try:
            signed = SignedTransaction.FromString(transaction.signedTransactionBytes)
            self.body = TransactionBody.FromString(signed.bodyBytes)
        except DecodeError as cause:
            raise Refused("INVALID_TRANSACTION") from cause
        if not signed.bodyBytes:
            raise Refused("INVALID_TRANSACTION")
        self.bytes: bytes = signed.bodyBytes
        self.pairs: list[SignaturePair] = list(signed.sigMap.sigPair)
        self.hash = sha384(transaction.signedTransactionBytes).digest()
        self.kind: str = self.body.WhichOneof("data") or ""
        self.payer = id_of(self.body.transactionID.accountID)

    def satisfies(self, key: Key | None) -> bool:
        """Return whether the signatures satisfy a key; an absent key asks for none."""
        return key is None or is_satisfied(key, self.bytes, self.pairs)
