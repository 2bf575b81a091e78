"""Where Hedera networks are."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from hiero_sdk_python.client.network import Network as SdkNetwork


class Addresses(msgspec.Struct, frozen=True):
    """Where a network is: consensus nodes by gRPC address, and its mirror by REST URL and gRPC address."""

    name: str
    nodes: Mapping[str, str]
    rest: str
    mirror: str
    is_mirror_tls: bool = False


def known_network(name: str) -> Addresses:
    """Return the addresses of a public network: mainnet, testnet or previewnet."""
    nodes = {address: str(account) for address, account in SdkNetwork.DEFAULT_NODES[name]}
    rest, mirror = SdkNetwork.MIRROR_NODE_URLS[name], SdkNetwork.MIRROR_ADDRESS_DEFAULT[name]
    return Addresses(name, nodes, rest, mirror, is_mirror_tls=True)
