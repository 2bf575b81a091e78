"""Luigi: the graph with its local scheduler and a file for every finished task, as Luigi requires.

A level waits for the one before through one wrapper task: with every edge listed, two minutes were not enough.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import luigi

ASKED = json.loads(sys.argv[1])


class Level(luigi.WrapperTask):
    """All tasks of one level."""

    run_id = luigi.IntParameter()
    level = luigi.IntParameter()

    def requires(self) -> list[luigi.Task]:
        return [Step(self.run_id, self.level, place) for place in range(ASKED["width"])]


class Step(luigi.Task):
    """One task of the graph."""

    run_id = luigi.IntParameter()
    level = luigi.IntParameter()
    place = luigi.IntParameter()

    def requires(self) -> list[luigi.Task]:
        return [Level(self.run_id, self.level - 1)] if self.level else []

    def output(self) -> luigi.LocalTarget:
        return luigi.LocalTarget(Path(ASKED["folder"]) / f"{self.run_id}-{self.level}-{self.place}")

    def run(self) -> None:
        with self.output().open("w") as done:
            done.write("done")


def main() -> None:
    """Run the measurement and print its result."""
    begun = time.perf_counter()
    assert luigi.build([Level(1, ASKED["levels"] - 1)], local_scheduler=True, log_level="CRITICAL")
    print(json.dumps({"seconds": time.perf_counter() - begun}))


if __name__ == "__main__":
    main()
