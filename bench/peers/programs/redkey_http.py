"""RedKey: create, claim-next, complete, one request each, one connection and agent per worker, by the bench's client.

Every worker has its own key, a role, and an Idempotency-Key for each write. `batched` sends 50 tasks per request
instead.
"""

from __future__ import annotations

import json
import sys

from bench.crew import BATCH, Crew
from bench.load import drive, milliseconds
from bench.served import Site

ASKED = json.loads(sys.argv[1])
PARTS = (1, 5, 10, 25, 50, 75, 90, 95, 99)


def main() -> None:
    """Run the measurement and print its result."""
    place, batched = ASKED["place"], ASKED.get("batched", False)
    task = {"title": "Research a guest", "input": {"body": "x" * ASKED["bytes"]}}
    crew = Crew(Site(place["url"], place["key"]), task)
    with crew.lanes(ASKED["workers"], lambda agent: agent.batch if batched else agent.cycle) as lanes:
        drive(lanes, ASKED["seconds"] / 4)
        load = drive(lanes, ASKED["seconds"])
    cycles = len(load.works) * (BATCH if batched else 1)
    quantiles = {str(part): milliseconds(load.works, part) for part in PARTS}
    print(json.dumps({"cycles": cycles, "seconds": load.seconds, "quantiles": quantiles}))


main()
