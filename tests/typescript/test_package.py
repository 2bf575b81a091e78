"""What is published: types under both compilers, the tarball in an empty project, its size, and no dependency."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

import redkey
from tests.harness.server import Server
from tests.typescript.conftest import PATIENCE_SECONDS, Compiled, clean, compile_with
from tools.node import SDK

# Decision 0351: 12 KiB were set for 95 operations.
LARGEST_BYTES = 13 * 1024
PROGRAM = """
import { RedKey } from "redkey";
import { verifyReceipt } from "redkey/receipts";

const rk = new RedKey();
await rk.queues.create({ name: "tarball" });
const { eventId } = await rk.tasks.create("tarball", { title: "T" });
const { findings } = await verifyReceipt(await rk.receipts.summary(eventId));
console.log((await rk.server.health()).status, findings[0]?.code);
"""


@pytest.mark.parametrize("compiler", ["typescript", "typescript7"])
def test_sdk_and_tests_are_strictly_typed(compiler: str) -> None:
    done = compile_with(compiler, "-p", "tsconfig.test.json", "--noEmit")
    assert done.returncode == 0, done.stdout


@pytest.fixture(scope="module")
def project(compiled: Compiled, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty project in which nothing but the tarball is installed."""
    folder = tmp_path_factory.mktemp("project")
    source = tmp_path_factory.mktemp("source")
    # Packed from a copy, so that nothing is built in the checkout.
    for name in ("package.json", "tsconfig.json", "README.md", "src"):
        _copy(SDK / name, source / name)
    (source / "node_modules").symlink_to(SDK / "node_modules")
    _npm(compiled, source, "pack", "--pack-destination", str(folder))
    (folder / "package.json").write_text('{"type": "module", "private": true}')
    _npm(compiled, folder, "install", "--offline", str(next(folder.glob("redkey-*.tgz"))))
    return folder


def _copy(source: Path, target: Path) -> None:
    subprocess.run(["cp", "-r", str(source), str(target)], check=True)


def _npm(compiled: Compiled, folder: Path, *arguments: str) -> None:
    path = f"{Path(compiled.node.node).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    command = [*compiled.node.npm, *arguments, "--no-audit", "--no-fund", "--loglevel=error"]
    done = subprocess.run(
        command, cwd=folder, env=clean(PATH=path), capture_output=True, text=True, timeout=PATIENCE_SECONDS
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_tarball_works_in_an_empty_project(compiled: Compiled, project: Path, server: Server) -> None:
    (project / "program.mjs").write_text(PROGRAM)
    environment = clean(REDKEY_URL=server.url, REDKEY_API_KEY=server.key)
    done = subprocess.run(
        [compiled.node.node, "program.mjs"],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert (done.stdout, done.stderr) == ("ok offline_missing\n", "")


@pytest.mark.parametrize("resolution", ["nodenext", "bundler"])
def test_the_types_of_the_tarball_are_found_and_checked(project: Path, resolution: str) -> None:
    (project / "program.ts").write_text(PROGRAM)
    module = "nodenext" if resolution == "nodenext" else "esnext"
    options = ["--module", module, "--moduleResolution", resolution, "--target", "es2022", "--lib", "es2022,dom"]
    found = ["--strict", "--noEmit", "--types", "", str(project / "program.ts")]
    done = compile_with("typescript7", *options, *found, "--ignoreConfig")
    assert done.returncode == 0, done.stdout


def test_the_tarball_has_no_dependency_and_holds_nothing_but_what_is_built(project: Path) -> None:
    installed = project / "node_modules" / "redkey"
    assert [one.name for one in (project / "node_modules").iterdir() if not one.name.startswith(".")] == ["redkey"]
    assert "dependencies" not in json.loads((installed / "package.json").read_text())
    assert {one.name for one in installed.iterdir()} == {"package.json", "README.md", "dist"}
    assert {one.suffix for one in (installed / "dist").rglob("*") if one.is_file()} == {".js", ".ts"}


@pytest.mark.parametrize("entry", ["index", "receipts/index"])
def test_a_bundle_for_browsers_is_small_and_needs_nothing_of_node(
    compiled: Compiled, project: Path, entry: str, record_property: Any
) -> None:
    file = project / "node_modules" / "redkey" / "dist" / f"{entry}.js"
    options = ["--bundle", "--minify", "--format=esm", "--platform=browser"]
    esbuild = SDK / "node_modules" / "esbuild" / "bin" / "esbuild"
    command = [compiled.node.node, str(esbuild), str(file), *options]
    done = subprocess.run(command, capture_output=True, timeout=PATIENCE_SECONDS)
    assert done.returncode == 0, done.stderr
    if entry == "index":
        errors = re.findall(r"^export class (\w+)", (SDK / "src" / "errors.ts").read_text(), re.MULTILINE)
        assert [name for name in errors if f'"{name}"'.encode() not in done.stdout] == [], (
            "errors that lost their names"
        )
    size = len(gzip.compress(done.stdout, 9))
    assert size < LARGEST_BYTES
    record_property("proven", f"TypeScript SDK: {entry} is {size:,} bytes, minified and gzipped")


def test_the_lock_file_names_no_registry() -> None:
    assert "resolved" not in (SDK / "package-lock.json").read_text()


def test_both_sdks_have_one_version() -> None:
    said = json.loads((SDK / "package.json").read_text())["version"]
    assert said == redkey.__version__
