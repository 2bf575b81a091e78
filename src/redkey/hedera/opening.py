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
from redkey.ledger.fees import HBAR, USD


def open_network(settings: Hedera) -> Network:
    """Return the network with its operator; ConfigRefused if a setting is missing or wrong."""
    if settings.network is None:
        raise ConfigRefused("no Hedera network is set; set hedera.network, hedera.operator and hedera.key_file")
    if not settings.operator:
        raise ConfigRefused("hedera.operator is missing: the account that pays, such as 0.0.1001")
    return Network(addresses_of(settings), Operator(settings.operator, read_key(settings.key_file)))


def open_anchor_post(settings: Hedera) -> AnchorPost:
    """Return what sends anchors; ConfigRefused if a setting is missing or wrong."""
    if not settings.topic:
        raise ConfigRefused("hedera.topic is missing; redkey hedera topic create creates one")
    return AnchorPost(
        open_network(settings),
        settings.topic,
        max_fee=int(settings.max_fee_usd * USD),
        max_custom_fee=int(settings.max_custom_fee_usd * USD),
        low_balance=int(settings.low_balance_hbar * HBAR),
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
    """Read a private key: one line of hex or DER hex, in a file that only its owner may read."""
    if path is None:
        raise ConfigRefused("hedera.key_file is missing: the file with the operator's private key")
    try:
        mode, text = path.stat().st_mode, path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as cause:
        raise ConfigRefused(f"the key file {path} cannot be read: {type(cause).__name__}") from cause
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigRefused(f"the key file {path} can be read by others; run chmod 600 {path}")
    try:
        return PrivateKey.from_string_der(text) if len(text) > 64 else PrivateKey.from_string_ed25519(text)
    except ValueError:
        # Without the cause: its message may quote the key.
        raise ConfigRefused(f"the key file {path} holds no Hedera private key (hex or DER)") from None


def _nodes(settings: Hedera) -> dict[str, str]:
    nodes = {}
    for text in settings.nodes:
        address, _, account = text.partition("=")
        if not address or not account:
            raise ConfigRefused(f"hedera.nodes: {text!r} is not HOST:PORT=ACCOUNT, such as 127.0.0.1:50211=0.0.3")
        nodes[address] = account
    return nodes
