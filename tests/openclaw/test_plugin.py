"""The OpenClaw plugin without a gateway: its types, its tools against a real server, its manifest and its size."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

import redkey
from tests.harness.server import serving
from tests.openclaw.conftest import PLUGIN, bundled
from tests.typescript.conftest import PATIENCE_SECONDS, clean, compile_with
from tests.typescript.test_sdk import passed
from tools.node import ROOT, Node

LARGEST_BYTES = 20 * 1024


def read(file: Path) -> Any:
    return json.loads(file.read_text())


def test_the_plugin_is_strictly_typed() -> None:
    done = compile_with("typescript7", "-p", str(PLUGIN / "tsconfig.json"))
    assert done.returncode == 0, done.stdout


def test_tools_and_service_against_a_real_server(node: Node, tmp_path: Path, record_property: Any) -> None:
    suite = bundled(node, "test/plugin.test.ts", tmp_path / "plugin.test.mjs")
    with serving(tmp_path) as server:
        done = subprocess.run(
            [node.node, "--test", "--test-timeout=90000", str(suite)],
            env=clean(REDKEY_URL=server.url, REDKEY_API_KEY=server.key),
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
    assert done.returncode == 0, f"{done.stdout[-8000:]}\n{done.stderr[-3000:]}"
    passed(done.stdout, "the OpenClaw plugin", record_property)


def test_the_bundle_is_small_and_imports_nothing_but_node_and_openclaw(
    node: Node, tmp_path: Path, record_property: Any
) -> None:
    text = bundled(node, "src/index.ts", tmp_path / "index.js").read_text()
    imported = set(re.findall(r'from"([^"]+)"', text))
    of_openclaw = {f"openclaw/plugin-sdk/{name}" for name in ("tool-plugin", "agent-scope-runtime")}
    of_node = {f"node:{name}" for name in ("crypto", "fs", "os", "path", "timers/promises")}
    assert imported == of_node | of_openclaw
    size = len(gzip.compress(text.encode(), 9))
    assert size < LARGEST_BYTES
    record_property("proven", f"OpenClaw plugin: {size:,} bytes with the SDK, minified and gzipped")


def test_the_manifest_says_what_the_sources_say(node: Node, tmp_path: Path) -> None:
    """As `openclaw plugins build` wrote it from them."""
    exported = {name: bundled(node, f"src/{name}.ts", tmp_path / f"{name}.mjs") for name in ("config", "tools")}
    script = "".join(f"import * as {name} from {json.dumps(file.as_uri())};" for name, file in exported.items())
    script += "console.log(JSON.stringify([config.configSchema, tools.TOOLS.map((tool) => tool.name)]))"
    done = subprocess.run(
        [node.node, "--input-type=module", "--eval", script], capture_output=True, text=True, timeout=PATIENCE_SECONDS
    )
    assert done.returncode == 0, done.stderr
    config_schema, names = json.loads(done.stdout)
    manifest = read(PLUGIN / "openclaw.plugin.json")
    assert manifest["configSchema"] == config_schema
    assert manifest["contracts"]["tools"] == names
    assert len(names) == 8
    assert manifest["activation"] == {"onStartup": True}


def test_versions_are_pinned_and_the_same() -> None:
    package, pinned = read(PLUGIN / "package.json"), read(Path(__file__).parent / "package.json")
    version = pinned["dependencies"]["openclaw"]
    assert package["openclaw"]["build"] == {"openclawVersion": version, "pluginSdkVersion": version}
    assert package["openclaw"]["compat"] == {"pluginApi": f">={version}", "minGatewayVersion": version}
    assert package["version"] == read(PLUGIN / "openclaw.plugin.json")["version"]
    assert package["version"] == redkey.__version__
    assert "dependencies" not in package


def test_the_example_has_an_agent_for_every_role_of_its_plan() -> None:
    config = read(ROOT / "examples" / "openclaw" / "openclaw.json")
    agents = config["plugins"]["entries"]["redkey"]["config"]["agents"]
    assert agents.keys() == config["agents"]["entries"].keys()
    for task in read(ROOT / "examples" / "podcast" / "plan.json")["tasks"]:
        able = [
            agent
            for agent in agents.values()
            if task["role"] in agent["roles"]
            and {*task.get("requiredCapabilities", [])} <= {*agent.get("capabilities", [])}
        ]
        assert able, task["id"]


def test_bundle_and_plugin_have_one_id_so_that_openclaw_loads_one_of_them() -> None:
    bundle = ROOT / "plugins" / "redkey" / ".claude-plugin" / "plugin.json"
    if not bundle.exists():
        pytest.skip("there is no bundle in plugins/redkey")
    assert read(bundle)["name"] == read(PLUGIN / "openclaw.plugin.json")["id"]
