"""Every event type as a struct. The class of `task.claimed` is `TaskClaimed`, and so for every type.

Written by `python -m tools.events` from the schemas of Agent Wire 1.1; `make verify` proves it current.
"""

from __future__ import annotations

from redkey.wire.events.agent import AgentDeactivated, AgentHeartbeat, AgentLost, AgentRegistered, AgentUpdated
from redkey.wire.events.artifact import ArtifactReady
from redkey.wire.events.checkpoint import CheckpointAnchored
from redkey.wire.events.content import ContentErased
from redkey.wire.events.credits import CreditsGranted, CreditsPriced
from redkey.wire.events.definition import DefinitionPublished
from redkey.wire.events.gate import GateApproved, GateOpened, GateRejected
from redkey.wire.events.inbox import InboxRead, InboxSent
from redkey.wire.events.key import KeyCreated, KeyRecovered, KeyRevoked
from redkey.wire.events.ledger import LedgerRestored
from redkey.wire.events.message import MessageAdded
from redkey.wire.events.party import PartyAdded, PartyRemoved
from redkey.wire.events.queue import QueueCreated, QueueUpdated
from redkey.wire.events.review import ReviewConcern
from redkey.wire.events.role import RoleCreated, RoleGranted, RoleRevoked
from redkey.wire.events.shared import Ref, WireState, WireStream
from redkey.wire.events.signer import SignerAdded, SignerRetired
from redkey.wire.events.task import (
    TaskAvailable,
    TaskBlocked,
    TaskCancelled,
    TaskClaimAttempted,
    TaskClaimed,
    TaskClaimMissed,
    TaskClaimRejected,
    TaskComplete,
    TaskCreated,
    TaskFailed,
    TaskLeaseExpired,
    TaskLeaseExtended,
    TaskPlanCreated,
    TaskReleased,
    TaskStarted,
    TaskUnblocked,
)
from redkey.wire.events.workflow import (
    WorkflowCancelled,
    WorkflowCompleted,
    WorkflowFailed,
    WorkflowPaused,
    WorkflowResumed,
    WorkflowStarted,
)
from redkey.wire.events.workspace import WorkspaceCreated, WorkspacePolicySet, WorkspaceRulesRaised

AnyPayload = (
    TaskCreated
    | TaskAvailable
    | TaskClaimAttempted
    | TaskClaimed
    | TaskClaimMissed
    | TaskClaimRejected
    | TaskStarted
    | TaskReleased
    | TaskPlanCreated
    | TaskLeaseExtended
    | TaskLeaseExpired
    | TaskBlocked
    | TaskUnblocked
    | TaskComplete
    | TaskFailed
    | TaskCancelled
    | ArtifactReady
    | MessageAdded
    | ReviewConcern
    | InboxSent
    | InboxRead
    | AgentRegistered
    | AgentUpdated
    | AgentDeactivated
    | AgentLost
    | AgentHeartbeat
    | RoleCreated
    | RoleGranted
    | RoleRevoked
    | QueueCreated
    | QueueUpdated
    | WorkflowStarted
    | WorkflowPaused
    | WorkflowResumed
    | WorkflowCancelled
    | WorkflowCompleted
    | WorkflowFailed
    | GateOpened
    | GateApproved
    | GateRejected
    | DefinitionPublished
    | WorkspaceCreated
    | WorkspaceRulesRaised
    | WorkspacePolicySet
    | PartyAdded
    | PartyRemoved
    | KeyCreated
    | KeyRevoked
    | KeyRecovered
    | ContentErased
    | SignerAdded
    | SignerRetired
    | LedgerRestored
    | CreditsGranted
    | CreditsPriced
    | CheckpointAnchored
)

# The struct of each event type.
PAYLOADS: dict[str, type[AnyPayload]] = {
    TaskCreated.TYPE: TaskCreated,
    TaskAvailable.TYPE: TaskAvailable,
    TaskClaimAttempted.TYPE: TaskClaimAttempted,
    TaskClaimed.TYPE: TaskClaimed,
    TaskClaimMissed.TYPE: TaskClaimMissed,
    TaskClaimRejected.TYPE: TaskClaimRejected,
    TaskStarted.TYPE: TaskStarted,
    TaskReleased.TYPE: TaskReleased,
    TaskPlanCreated.TYPE: TaskPlanCreated,
    TaskLeaseExtended.TYPE: TaskLeaseExtended,
    TaskLeaseExpired.TYPE: TaskLeaseExpired,
    TaskBlocked.TYPE: TaskBlocked,
    TaskUnblocked.TYPE: TaskUnblocked,
    TaskComplete.TYPE: TaskComplete,
    TaskFailed.TYPE: TaskFailed,
    TaskCancelled.TYPE: TaskCancelled,
    ArtifactReady.TYPE: ArtifactReady,
    MessageAdded.TYPE: MessageAdded,
    ReviewConcern.TYPE: ReviewConcern,
    InboxSent.TYPE: InboxSent,
    InboxRead.TYPE: InboxRead,
    AgentRegistered.TYPE: AgentRegistered,
    AgentUpdated.TYPE: AgentUpdated,
    AgentDeactivated.TYPE: AgentDeactivated,
    AgentLost.TYPE: AgentLost,
    AgentHeartbeat.TYPE: AgentHeartbeat,
    RoleCreated.TYPE: RoleCreated,
    RoleGranted.TYPE: RoleGranted,
    RoleRevoked.TYPE: RoleRevoked,
    QueueCreated.TYPE: QueueCreated,
    QueueUpdated.TYPE: QueueUpdated,
    WorkflowStarted.TYPE: WorkflowStarted,
    WorkflowPaused.TYPE: WorkflowPaused,
    WorkflowResumed.TYPE: WorkflowResumed,
    WorkflowCancelled.TYPE: WorkflowCancelled,
    WorkflowCompleted.TYPE: WorkflowCompleted,
    WorkflowFailed.TYPE: WorkflowFailed,
    GateOpened.TYPE: GateOpened,
    GateApproved.TYPE: GateApproved,
    GateRejected.TYPE: GateRejected,
    DefinitionPublished.TYPE: DefinitionPublished,
    WorkspaceCreated.TYPE: WorkspaceCreated,
    WorkspaceRulesRaised.TYPE: WorkspaceRulesRaised,
    WorkspacePolicySet.TYPE: WorkspacePolicySet,
    PartyAdded.TYPE: PartyAdded,
    PartyRemoved.TYPE: PartyRemoved,
    KeyCreated.TYPE: KeyCreated,
    KeyRevoked.TYPE: KeyRevoked,
    KeyRecovered.TYPE: KeyRecovered,
    ContentErased.TYPE: ContentErased,
    SignerAdded.TYPE: SignerAdded,
    SignerRetired.TYPE: SignerRetired,
    LedgerRestored.TYPE: LedgerRestored,
    CreditsGranted.TYPE: CreditsGranted,
    CreditsPriced.TYPE: CreditsPriced,
    CheckpointAnchored.TYPE: CheckpointAnchored,
}

__all__ = [
    "PAYLOADS",
    "AgentDeactivated",
    "AgentHeartbeat",
    "AgentLost",
    "AgentRegistered",
    "AgentUpdated",
    "AnyPayload",
    "ArtifactReady",
    "CheckpointAnchored",
    "ContentErased",
    "CreditsGranted",
    "CreditsPriced",
    "DefinitionPublished",
    "GateApproved",
    "GateOpened",
    "GateRejected",
    "InboxRead",
    "InboxSent",
    "KeyCreated",
    "KeyRecovered",
    "KeyRevoked",
    "LedgerRestored",
    "MessageAdded",
    "PartyAdded",
    "PartyRemoved",
    "QueueCreated",
    "QueueUpdated",
    "Ref",
    "ReviewConcern",
    "RoleCreated",
    "RoleGranted",
    "RoleRevoked",
    "SignerAdded",
    "SignerRetired",
    "TaskAvailable",
    "TaskBlocked",
    "TaskCancelled",
    "TaskClaimAttempted",
    "TaskClaimMissed",
    "TaskClaimRejected",
    "TaskClaimed",
    "TaskComplete",
    "TaskCreated",
    "TaskFailed",
    "TaskLeaseExpired",
    "TaskLeaseExtended",
    "TaskPlanCreated",
    "TaskReleased",
    "TaskStarted",
    "TaskUnblocked",
    "WireState",
    "WireStream",
    "WorkflowCancelled",
    "WorkflowCompleted",
    "WorkflowFailed",
    "WorkflowPaused",
    "WorkflowResumed",
    "WorkflowStarted",
    "WorkspaceCreated",
    "WorkspacePolicySet",
    "WorkspaceRulesRaised",
]
