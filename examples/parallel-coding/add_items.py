"""Create a task on a queue for each item: `python3 add_items.py QUEUE ITEM...`."""

import contextlib
import sys

from redkey.client import Conflict, RedKey, Retry

queue, *items = sys.argv[1:]
with RedKey() as rk:
    with contextlib.suppress(Conflict):
        rk.queues.create(queue)
    for item in items:
        title = f"Add {item} to the shop"
        print(rk.tasks.create(queue, title=title, input={"item": item}, retry=Retry(max_attempts=3)).task_id)
