"""Every family of calls.

Written by `python -m tools.sdk` from the declared operations; `make verify` proves it current.
"""

from __future__ import annotations

from typing import Generic

from redkey.client.calls.billing import Billing
from redkey.client.calls.checkpoints import Checkpoints
from redkey.client.calls.claims import Claims
from redkey.client.calls.definitions import Definitions
from redkey.client.calls.gates import Gates
from redkey.client.calls.inbox import Inbox
from redkey.client.calls.keys import Keys
from redkey.client.calls.ledger import Ledger
from redkey.client.calls.logins import Logins
from redkey.client.calls.people import People
from redkey.client.calls.phases import Phases
from redkey.client.calls.projects import Projects
from redkey.client.calls.queues import Queues
from redkey.client.calls.roles import Roles
from redkey.client.calls.signup import Signup
from redkey.client.calls.usage import Usage
from redkey.client.calls.webhooks import Webhooks
from redkey.client.calls.workspaces import Workspaces
from redkey.client.operation import ClientSender, Mode
from redkey.client.resources.agents import Agents
from redkey.client.resources.content import Content
from redkey.client.resources.ledger import Events
from redkey.client.resources.receipts import Receipts
from redkey.client.resources.server import OAuth, Server
from redkey.client.resources.tasks import Tasks
from redkey.client.resources.workflows import Workflows


class Families(Generic[Mode]):
    """Every family of calls, on one sender."""

    def _open(self, sender: ClientSender) -> None:
        self.agents: Agents[Mode] = Agents(sender)
        self.billing: Billing[Mode] = Billing(sender)
        self.checkpoints: Checkpoints[Mode] = Checkpoints(sender)
        self.claims: Claims[Mode] = Claims(sender)
        self.content: Content[Mode] = Content(sender)
        self.definitions: Definitions[Mode] = Definitions(sender)
        self.events: Events[Mode] = Events(sender)
        self.gates: Gates[Mode] = Gates(sender)
        self.inbox: Inbox[Mode] = Inbox(sender)
        self.keys: Keys[Mode] = Keys(sender)
        self.ledger: Ledger[Mode] = Ledger(sender)
        self.logins: Logins[Mode] = Logins(sender)
        self.oauth: OAuth[Mode] = OAuth(sender)
        self.people: People[Mode] = People(sender)
        self.phases: Phases[Mode] = Phases(sender)
        self.projects: Projects[Mode] = Projects(sender)
        self.queues: Queues[Mode] = Queues(sender)
        self.receipts: Receipts[Mode] = Receipts(sender)
        self.roles: Roles[Mode] = Roles(sender)
        self.server: Server[Mode] = Server(sender)
        self.signup: Signup[Mode] = Signup(sender)
        self.tasks: Tasks[Mode] = Tasks(sender)
        self.usage: Usage[Mode] = Usage(sender)
        self.webhooks: Webhooks[Mode] = Webhooks(sender)
        self.workflows: Workflows[Mode] = Workflows(sender)
        self.workspaces: Workspaces[Mode] = Workspaces(sender)
