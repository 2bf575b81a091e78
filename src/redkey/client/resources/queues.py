"""Queues, and the claim of whatever is next on one."""

from redkey.client.calls.queues import Queues as Queues
from redkey.shapes.queues import CreatedQueue as CreatedQueue
from redkey.shapes.queues import Queue as Queue
from redkey.shapes.tasks import Priority as Priority
