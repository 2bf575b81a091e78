"""Write the settings of a simulated network to a TOML file, with an operator and a topic that are ready to use."""

from __future__ import annotations

import json
from pathlib import Path

from redkey.config import Hedera
from redkey.hedera.addresses import Addresses
from redkey.hedera.network import Network, Operator
from redkey.hedera.standin.server import StandIn
from redkey.hedera.topics import create_topic
from redkey.stores.durable import replace_file

_HBAR = 10_000


def write_settings(standin: StandIn, file: Path) -> Hedera:
    """Create an operator and a topic, and write the table [hedera]; the key goes into its own file."""
    account, key = standin.open_account(_HBAR)
    key_file = file.with_suffix(".key").absolute()
    replace_file(key_file, f"{key.to_string_der()}\n".encode(), mode=0o600)
    network = Network(Addresses("local", standin.nodes, standin.rest, standin.mirror), Operator(account, key))
    try:
        topic = create_topic(network, "RedKey checkpoints")
    finally:
        network.close()
    nodes = [f"{address}={node}" for address, node in standin.nodes.items()]
    settings = {
        "network": "local",
        "operator": account,
        "key_file": str(key_file),
        "topic": topic,
        "anchor_seconds": 1.0,
        "nodes": nodes,
        "mirror_url": standin.rest,
    }
    # In TOML, strings, numbers and lists of strings are written as in JSON.
    lines = ["[hedera]", *(f"{name} = {json.dumps(value)}" for name, value in settings.items())]
    replace_file(file.absolute(), "".join(f"{line}\n" for line in lines).encode(), mode=0o644)
    return Hedera(network="local", operator=account, topic=topic)
