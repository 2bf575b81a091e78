"""Create the virtual environment of this checkout, and show the progress.

Any Python can run it (`python3 tools/install.py requirements-run.lock`): it imports only the standard library, and an
interpreter that is too old gets an error that says so. Both distributions of the tree are installed editable.
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

NEEDED = (3, 11)
ROOT = Path(__file__).resolve().parents[1]
EDITABLE = ("--editable", str(ROOT / "sdk" / "python"), "--editable", str(ROOT))
PIP = ("-m", "pip", "install", "--disable-pip-version-check", "--progress-bar", "off")


class Display:
    """Shows the current step: in one changing line on a terminal, in a few lines elsewhere."""

    def __init__(self):  # type: () -> None
        self._terminal = sys.stdout.isatty()
        self._began = time.monotonic()
        self._shown = ""

    def say(self, phase, done=0, total=0, name=""):  # type: (str, int, int, str) -> None
        if not self._terminal:
            if phase != self._shown:
                print(f"{phase} ...", flush=True)
            self._shown = phase
            return
        seconds = f"{time.monotonic() - self._began:3.0f} s"
        filled = 20 * done // total if total else 0
        bar = f"  {'#' * filled}{'.' * (20 - filled)} {done}/{total}" if total else ""
        width = shutil.get_terminal_size().columns - 1
        print("\r\033[K" + f"{seconds}  {phase}{bar}  {name}"[:width], end="", flush=True)

    def end(self, sentence):  # type: (str) -> None
        begin = "\r\033[K" if self._terminal else ""
        print(f"{begin}{sentence} in {time.monotonic() - self._began:.0f} s", flush=True)


def _pip(python, arguments, on_line):  # type: (str, list[str], object) -> None
    """Run pip and pass each line of its output on; print the output only if pip fails."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    output = []
    with subprocess.Popen(
        [python, *PIP, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as process:
        for line in process.stdout:
            output.append(line)
            on_line(line)
    if process.returncode != 0:
        sys.exit(
            "\n" + "".join(output[-30:]) + "redkey: pip could not install; its output is above. Next: check the "
            "network, then run the same command again"
        )


def main(lock, venv=".venv"):  # type: (str, str) -> None
    """Install the packages of the lock file, and this checkout, into the environment."""
    if sys.version_info < NEEDED:
        version = ".".join(map(str, sys.version_info[:3]))
        sys.exit(
            f"redkey: needs Python {NEEDED[0]}.{NEEDED[1]} or newer, and {sys.executable} is {version}. "
            "Next: name a newer one, as in make demo PYTHON=python3.12"
        )
    display = Display()
    python = str(Path(venv) / "bin" / "python")
    display.say(f"Creating {venv}")
    subprocess.run([sys.executable, "-m", "venv", "--clear", venv], check=True)
    wanted = sum("==" in line for line in Path(lock).read_text(encoding="utf-8").splitlines())
    packages = []

    def collected(line):  # type: (str) -> None
        word = line.partition(" ")[0]
        if word in ("Collecting", "Processing"):
            packages.append(Path(line.split()[1]).name.partition("==")[0].partition("-")[0])
            display.say("Collecting packages", len(packages), wanted, packages[-1])
        elif line.startswith("Installing collected packages"):
            display.say(f"Installing {len(packages)} packages")

    _pip(python, ["--require-hashes", "-r", lock], collected)
    display.say("Installing redkey")
    _pip(python, ["--no-deps", "--no-build-isolation", *EDITABLE], lambda line: None)
    display.end(f"Installed {len(packages)} packages and redkey into {venv}")


if __name__ == "__main__":
    main(*sys.argv[1:])
