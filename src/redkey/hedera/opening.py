"""Open the network that the configuration names: its addresses, and the operator's key from its file."""

from __future__ import annotations

import stat
from pathlib import Path

from hiero_sdk_python.crypto.private_key import PrivateKey

from redkey.config import Hedera
from redkey.errors import ConfigRefused
from redkey.hedera.addresses import Addresses, known_network
from redkey.hedera.anchor_post import AnchorPost
from redkey.hedera.network import Network, Operator
from redkey.hedera.peers import Peers
from redkey.hedera.prices import FeeTerms
from redkey.hedera.topics import HederaTopics
from redkey.ledger.fees import HBAR, USD


def open_network(settings: Hedera) -> Network:
    """Return the network with its operator; ConfigRefused if a setting is missing or wrong."""
    if settings.network is None:
        raise ConfigRefused("no Hedera network is set; set hedera.network, hedera.operator and hedera.key_file")
    if not settings.operator:
        raise ConfigRefused("hedera.operator is missing: the account that pays, such as 0.0.1001")
    return Network(addresses_of(settings), Operator(settings.operator, read_key(settings.key_file)))


def open_topics(settings: Hedera) -> HederaTopics:
    """Return the topics that order workspaces; ConfigRefused if a setting is missing or wrong."""
    folder = settings.submit_keys
    return HederaTopics(open_network(settings), fee_terms(settings), lambda topic: _submit_keys(folder, topic))


def open_peers(settings: Hedera) -> Peers:
    """Return the servers of other organisations; ConfigRefused if a key cannot be read."""
    return Peers([(peer.url, read_secret(peer.key_file, "a peer's key")) for peer in settings.peers])


def open_anchor_post(settings: Hedera) -> AnchorPost:
    """Return what sends anchors; ConfigRefused if a setting is missing or wrong."""
    if not settings.topic:
        raise ConfigRefused("hedera.topic is missing; redkey hedera topic create creates one")
    return AnchorPost(open_network(settings), settings.topic, fee_terms(settings))


def fee_terms(settings: Hedera) -> FeeTerms:
    """Return what the settings allow to be paid for a message."""
    return FeeTerms(
        int(settings.max_fee_usd * USD),
        int(settings.max_custom_fee_usd * USD),
        int(settings.low_balance_hbar * HBAR),
    )


def addresses_of(settings: Hedera) -> Addresses:
    """Return where the network of the settings is."""
    if settings.network != "local":
        known = known_network(str(settings.network))
        rest, nodes = settings.mirror_url or known.rest, _nodes(settings) or known.nodes
        return Addresses(known.name, nodes, rest, known.mirror, known.is_mirror_tls)
    nodes = _nodes(settings)
    if not nodes or not settings.mirror_url:
        raise ConfigRefused(
            "a local network needs hedera.nodes and hedera.mirror_url; redkey hedera standin prints both"
        )
    return Addresses("local", nodes, settings.mirror_url, next(iter(nodes)))


def read_key(path: Path | None) -> PrivateKey:
    """Read a private key: one line, DER in hex, an Ed25519 key in hex or an ECDSA key as 0x and hex."""
    if path is None:
        raise ConfigRefused("hedera.key_file is missing: the file with the operator's private key")
    text = read_secret(path, "the key file")
    try:
        digits = text.lower().removeprefix("0x")
        if len(digits) > 64:
            return PrivateKey.from_string_der(digits)
        # Portals and wallets show ECDSA keys with 0x.
        is_ecdsa = digits != text.lower()
        return PrivateKey.from_string_ecdsa(digits) if is_ecdsa else PrivateKey.from_string_ed25519(digits)
    except ValueError:
        # Without the cause: its message may quote the key.
        known = "DER in hex, 64 digits of an Ed25519 key, or 0x and 64 digits of an ECDSA key"
        raise ConfigRefused(f"the key file {path} holds no Hedera private key ({known})") from None


def read_secret(path: Path, name: str) -> str:
    """Read a secret from a file that only its owner may read."""
    try:
        mode, text = path.stat().st_mode, path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as cause:
        raise ConfigRefused(f"{name} {path} cannot be read: {type(cause).__name__}") from cause
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigRefused(f"{name} {path} can be read by others; run chmod 600 {path}")
    return text


def _submit_keys(folder: Path | None, topic: str) -> tuple[PrivateKey, ...]:
    """Return the submit key of a topic that somebody else owns, if there is one."""
    file = folder / f"{topic}.key" if folder is not None else None
    return (read_key(file),) if file is not None and file.exists() else ()


def _nodes(settings: Hedera) -> dict[str, str]:
    nodes = {}
    for text in settings.nodes:
        address, _, account = text.partition("=")
        if not address or not account:
            raise ConfigRefused(f"hedera.nodes: {text!r} is not HOST:PORT=ACCOUNT, such as 127.0.0.1:50211=0.0.3")
        nodes[address] = account
    return nodes
