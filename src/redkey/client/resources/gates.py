"""Gates: approvals that completed tasks wait for."""

from redkey.client.calls.gates import Gates as Gates
from redkey.shapes.gates import Gate as Gate
from redkey.shapes.gates import GateDecided as GateDecided
