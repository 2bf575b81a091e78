"""`python -m tests.bugzoo [NAME...]`: how many seeds it takes to find each planted bug, and what gives it away."""

from __future__ import annotations

import sys

from tests.bugzoo.bugs import BUGS
from tests.bugzoo.hunt import seeds_to_find
from tests.bugzoo.network_bugs import NETWORK_BUGS

for name in sys.argv[1:] or (*BUGS, *NETWORK_BUGS):
    count, told = seeds_to_find(name, 500, network=name in NETWORK_BUGS)
    print(f"{count or 'NOT FOUND':>9}  {name}: {told[:120]}", flush=True)
