// Written by `python -m tools.typescript` from the OpenAPI document; `make verify` proves it current.

/** One page of a list; `next` is the cursor of the page that follows, null when there is none. */
export interface Page<Item> {
  items: Item[];
  next?: string | null;
}

/** How the receiver confirms a message: by itself, by its application, or not at all; and how long it has. */
export interface Ack {
  mode?: string | null;
  timeout_ms?: number | null;
}

/** Something that is allowed and probably not meant. */
export interface Advice {
  code: string;
  pointer: string;
  message: string;
}

/** What may be changed of an agent; what is absent stays. */
export interface AgentChange {
  name?: string | null;
  lead?: boolean | null;
  status?: string | null;
}

/** All agents of a session, each once. */
export interface AgentOrder {
  agent_ids: string[];
}

/** What to change; a new card replaces the old one and its capabilities. */
export interface AgentPatch {
  slug?: string;
  agentCard?: Record<string, unknown> | null;
  framework?: string | null;
  eligibleRoles?: string[] | null;
  verification?: "unverified" | "verified" | null;
  active?: boolean | null;
}

/** An agent: what its card says, which is data from a stranger, and what the ledger knows. */
export interface AgentView {
  agentId: string;
  slug: string;
  active: boolean;
  lost: boolean;
  name?: string;
  description?: string;
  framework?: string;
  endpoint?: string;
  endpoints?: EndpointView[];
  cardFormat?: string;
  version?: string;
  provider?: string;
  capabilities: string[];
  skills?: SkillView[];
  authRequirements?: AuthRequirementView[];
  features?: string[];
  verification: VerificationView;
  eligibleRoles?: string[];
  roles: string[];
  liveClaims: number;
  capacity?: number | null;
  inUse?: number | null;
  registeredAt: string;
  lastActAt: string;
  cardUrl?: string;
  card?: Record<string, unknown> | null;
  erased?: boolean;
}

/** What lifts a block. */
export interface Answer {
  answer?: string;
}

/** What to say with it. */
export interface Approval {
  note?: string;
}

/** Where the artifact stands. */
export interface ArtifactAdded {
  artifactId: string;
  eventId: string;
  taskId: string;
  name: string;
  version: number;
  sha256: string;
}

/** An artifact, by its id. */
export interface ArtifactPart {
  kind: "artifact_ref";
  mediaType?: string | null;
  name?: string | null;
  artifactId: string;
}

/** An artifact of the current attempt; `sha256` is that of its bytes. */
export interface ArtifactView {
  artifactId: string;
  name: string;
  version: number;
  readiness: string;
  sha256: string;
  bytes: number;
  mediaType?: string;
  uri?: string;
  erased?: boolean;
}

/** The work that comes with a claim: what never changes about a task, so that the same claim is told alike. */
export interface Assignment {
  taskId: string;
  queueId: string;
  attempt: number;
  workflowId?: string;
  planTaskId?: string;
  contextId: string;
  title?: string;
  description?: string;
  input?: unknown;
  brief?: Record<string, unknown> | null;
  completionCriteria?: string[];
  outputs?: string[];
  requiredRoles: string[];
  requiredCapabilities: string[];
  priority: string;
  parentTaskId?: string;
  referenceTaskIds?: string[];
  expectedInputs?: string[];
  outputContract?: Record<string, unknown> | null;
  upstream?: UpstreamView[];
  workflowInput?: unknown;
  note?: string;
  priorContext?: string[];
  erased?: boolean;
}

/** How an agent asks its callers to authenticate. */
export interface AuthRequirementView {
  name: string;
  type?: string;
}

/** One completion of a batch. */
export interface BatchedCompletion {
  output?: unknown;
  summary?: string;
  artifactIds?: string[];
  costUsd?: number;
  durationSeconds?: number | null;
  semantic?: "fail" | "pass" | "skipped";
  attempts?: number;
  notes?: string;
  claimNext?: Following | null;
  claimId: string;
}

/** A sign of life, and how much work the agent can take and has. */
export interface Beat {
  capacity?: number | null;
  inUse?: number | null;
}

/** What stands in the way, and who or what could lift it. */
export interface Block {
  reason: string;
  blockerType: "ambiguity" | "auth" | "dependency" | "resource" | "spec_gap" | "tool_failure" | "verification_fail";
  suggestedResolution?: string;
  dependsOn?: string[];
}

/** Why a task stands still, in the words of the agent that met it. */
export interface BlockerView {
  blockerType: string;
  reason?: string;
  suggestedResolution?: string;
  dependsOn?: string[];
  erased?: boolean;
}

/** An agent of a session. */
export interface BusAgent {
  id: string;
  name: string | null;
  lead: boolean;
  status: string | null;
  online: boolean;
}

/** How far a message has come to one agent. */
export interface BusDelivery {
  agent_id: string;
  state: "acknowledged" | "delivered" | "waiting";
}

/** A record of a session: `payload` is `{seq, ts, envelope}`. */
export interface BusEvent {
  id: string;
  session_id: string;
  agent_id: string;
  type: string;
  event_type: string;
  created_at: string;
  payload: Record<string, unknown>;
}

/** The bus answers. */
export interface BusHealth {
  status: "ok";
}

/** Whether a session is told what is recorded in its workspace. */
export interface BusLedger {
  bound: boolean;
  workspace_id: string;
}

/** What became of a message that was recorded. */
export interface BusMail {
  message_id: string;
  to: string;
  event_id: string;
}

/** A message. `deliveries` is there when one message is read, `seq` when it waits for an agent. */
export interface BusMessage {
  id: string;
  session_id: string;
  src: string;
  kind: "control" | "reply" | "system" | "user";
  text: string;
  conversation_id: string;
  conversation_owner: string;
  created_at: string;
  dst: string | null;
  parent_message_id: string | null;
  reply_to: string | null;
  sender_name: string | null;
  ack: Ack | null;
  deliveries?: BusDelivery[];
  seq?: number;
}

/** A session. */
export interface BusSession {
  id: string;
  name: string | null;
  status: "closed" | "open";
  policy: "guarded" | "open";
  created_at: string;
  updated_at: string;
}

/** A signed head of the workspace's log: how many records, and the root over them. `note` is what was signed. `keys` are the log's verifier keys, to be handed on by a way you trust: a key that comes with a receipt proves nothing. */
export interface CheckpointReply {
  origin: string;
  size: number;
  root: string;
  note: string;
  keys: string[];
}

/** An agent asks for a task. */
export interface Claim {
  agentId: string;
  leaseSeconds?: number | null;
  withTask?: boolean;
  idempotencyKey?: string | null;
}

/** What became of one claim of a batch: it was completed, or there is a problem with it. */
export interface ClaimResult {
  claim?: Ended | null;
  problem?: Problem | null;
}

/** What became of each claim, in the order of the request. */
export interface ClaimResults {
  items: ClaimResult[];
}

/** Who holds a task now, and until when. */
export interface ClaimView {
  claimId: string;
  agentId: string;
  claimedAt: string | null;
  startedAt?: string | null;
  leaseExpiresAt: string | null;
}

/** The task is this agent's until the lease expires. `task` comes when asked for, and always with claim-next. */
export interface Claimed {
  status: "claimed";
  taskId: string;
  claimId: string;
  agentId: string;
  leaseExpiresAt: string;
  eventId: string;
  task?: Assignment | null;
  claims?: Claimed[] | null;
}

/** What was done. Required outputs must have ready artifacts; the server checks that itself. */
export interface Completion {
  output?: unknown;
  summary?: string;
  artifactIds?: string[];
  costUsd?: number;
  durationSeconds?: number | null;
  semantic?: "fail" | "pass" | "skipped";
  attempts?: number;
  notes?: string;
  claimNext?: Following | null;
}

/** Up to 500 completions; each gets its own result. */
export interface Completions {
  claims: BatchedCompletion[];
}

/** Where the tasks of a context stand, in the words of the seed's project fold. */
export interface ContextState {
  contextId: string;
  taskCount: number;
  tasks: Record<string, string[]>;
  blocked: boolean;
  blockedTaskIds: string[];
  artifactCount: number;
  artifactIds: string[];
  terminal: boolean;
  complete: boolean;
}

/** How many tasks of a run stand where. */
export interface Counts {
  total: number;
  completed: number;
  failed: number;
  cancelled: number;
  open: number;
}

/** A new task and where it stands. */
export interface Created {
  taskId: string;
  queueId: string;
  status: string;
  eventId: string;
  warnings?: Advice[];
}

/** A new key; `apiKey` is shown here and never again. */
export interface CreatedKey {
  keyId: string;
  apiKey: string;
  scopes: string[];
  agentId: string | null;
  eventId: string;
}

/** A new queue. */
export interface CreatedQueue {
  queueId: string;
  name: string;
  eventId: string;
}

/** A new role. */
export interface CreatedRole {
  id: string;
  name: string;
  description?: string;
  capabilities: string[];
  eventId: string;
}

/** A workspace that was begun, and its first key (scope admin), which is shown here and never again. */
export interface CreatedWorkspace {
  workspaceId: string;
  keyId: string;
  apiKey: string;
  eventId: string;
}

/** Credits that were granted. */
export interface CreditsGranted {
  status: "granted";
  workspaceId: string;
  amount: number;
  unit: string;
  eventId: string;
}

/** What may be spent. Before the first grant nothing is limited, and there is no balance. */
export interface CreditsReply {
  granted: number;
  used: number;
  balance: number | null;
  unit: string;
  prices: Record<string, number>;
  ledgerFees: LedgerFees;
}

/** Small JSON. */
export interface DataPart {
  kind: "data";
  mediaType?: string | null;
  name?: string | null;
  data: unknown;
}

/** The agent may claim nothing more. */
export interface Deactivated {
  agentId: string;
  eventId: string;
  status: "deactivated";
}

/** A gate that is closed; `retry` says of a rejection whether another attempt follows. */
export interface Decided {
  gateId: string;
  status: "approved" | "rejected";
  taskId: string;
  workflowId?: string;
  retry?: boolean | null;
  eventId: string;
}

/** A definition in a list. `version` is the last one that was published, `draftVersion` the one in work. */
export interface DefinitionSummary {
  definitionId: string;
  name?: string;
  status: "draft" | "published";
  version?: number | null;
  draftVersion?: number | null;
  erased?: boolean;
}

/** A definition with a plan: the draft's, else that of the last version, else that of the version asked for. */
export interface DefinitionView {
  definitionId: string;
  name?: string;
  status: "draft" | "published";
  version?: number | null;
  draftVersion?: number | null;
  erased?: boolean;
  shownVersion: number;
  revision?: number | null;
  plan?: Record<string, unknown> | null;
  validation?: ValidationView | null;
  versions: VersionView[];
}

/** What to change about the draft's plan: a JSON merge patch (RFC 7396). `revision` is the one it must have. */
export interface DraftChange {
  plan: Record<string, unknown>;
  revision?: number | null;
}

/** A draft; `validation` says what keeps it from being published. */
export interface DraftView {
  definitionId: string;
  version: number;
  status: "draft";
  name?: string;
  revision: number;
  validation: ValidationView;
  updatedAt: string;
}

/** `to` waits for `source`. */
export interface Edge {
  source: string;
  to: string;
}

/** What the record did: inclusion proves that it is there, not that it changed anything. */
export interface Effect {
  status: "applied" | "void";
  reason?: string | null;
}

/** A claim that has ended; `next` is the claim that was asked for with it. */
export interface Ended {
  status: "blocked" | "completed" | "failed" | "planned" | "released" | "started";
  taskId: string;
  claimId: string;
  eventId: string;
  retry?: boolean | null;
  gateId?: string;
  next?: Claimed | Missed | Rejected | NoTasks | null;
}

/** Where an agent says it is reached. */
export interface EndpointView {
  url: string;
  binding?: string;
  protocolVersion?: string;
}

/** Content that is gone; its hash stays on the ledger. */
export interface Erased {
  sha256: string;
  status: "erased";
  eventId: string;
}

/** Where a task stands, and what would move it. */
export interface Explanation {
  taskId: string;
  state: string;
  running: boolean;
  reasons: Reason[];
}

/** Why it could not be done. */
export interface Failure {
  reason: string;
  kind?: "error" | "rejected" | "timeout" | "verification";
  claimNext?: Following | null;
}

/** How a task failed. */
export interface FailureView {
  kind: string;
  reason?: string;
}

/** What was counted: recorded events, outcomes of claims, bytes on the ledger, credits. */
export interface Figures {
  events?: number;
  claims?: number;
  misses?: number;
  rejected?: number;
  bytes?: number;
  credits?: number;
}

/** A file elsewhere, and the hash of its bytes. */
export interface FilePart {
  kind: "file_ref";
  mediaType?: string | null;
  name?: string | null;
  uri: string;
  sha256: string;
}

/** One thing that stands against a plan, or could be better about it: where, and what to do. */
export interface FindingView {
  code: string;
  path: string;
  message: string;
}

/** The claim that a busy worker asks for together with the end of the one before. */
export interface Following {
  queueId: string;
  leaseSeconds?: number | null;
}

/** Who approves a completion beside the admins: keys, agents or roles; never the worker. */
export interface Gate {
  approvers?: string[];
  deadlineSeconds?: number | null;
  onDeadline?: "hold" | "reject";
}

/** An approval that a completed task waits for, or how it was decided. */
export interface GateView {
  gateId: string;
  state: "approved" | "cancelled" | "open" | "rejected";
  taskId: string;
  attempt: number;
  workflowId?: string;
  planTaskId?: string;
  queueId: string;
  title?: string;
  approvers?: string[];
  worker: string;
  agentId?: string;
  openedAt: string;
  deadlineAt?: string | null;
  onDeadline?: string;
  closedAt?: string | null;
  closedBy?: string;
  note?: string;
}

/** Credits for a workspace, the caller's own when none is named. */
export interface Grant {
  amount: number;
  unit?: string;
  workspaceId?: string | null;
}

/** Whether an agent has a role now; an event only when that changed. */
export interface Granted {
  roleId: string;
  agentId: string;
  status: "granted" | "revoked";
  eventId?: string;
}

/** A run as nodes and edges. */
export interface Graph {
  workflowId: string;
  status: string;
  nodes: Node[];
  edges: Edge[];
}

/** The server answers. */
export interface Health {
  status?: "ok";
}

/** The agent was heard of; only what changes something is an event. */
export interface Heard {
  agentId: string;
  status: "alive";
  eventId?: string;
}

/** Whether the claim still holds its task, and until when. */
export interface HeartbeatReply {
  state: "cancelled" | "held" | "lease_lost";
  leaseExpiresAt?: string | null;
  eventId?: string;
}

/** One claim and its outcome. */
export interface HistoryItem {
  taskId: string;
  claimId: string;
  status: string;
  reason?: string;
  winningClaimId?: string;
  winningAgentId?: string;
  leaseExpiresAt?: string;
  at: string;
  eventId: string;
  sequence: number;
}

/** What became of a claim. */
export interface HoldReply {
  status: "blocked" | "completed" | "failed" | "planned" | "released" | "started";
  taskId: string;
  claimId: string;
  eventId: string;
}

/** What the ledger knows and normal users never need. */
export interface Internal {
  topicId: string;
  payer: string;
  consensusTimestamp: string;
  previousRunningHash: string;
  runningHash: string;
}

/** A public key (RFC 7517, RFC 8037). */
export interface JsonWebKey {
  kty: string;
  crv: string;
  x: string;
  kid: string;
  use: string;
  alg: string;
}

/** The keys that sign access tokens. */
export interface JsonWebKeySet {
  keys: JsonWebKey[];
}

/** Content that is kept: its name and its size. */
export interface Kept {
  sha256: string;
  bytes: number;
}

/** A key as lists show it: by its prefix, never its secret. */
export interface KeyView {
  keyId: string;
  prefix: string;
  scopes: string[];
  name: string | null;
  agentId: string | null;
  createdAt: string;
  revokedAt: string | null;
}

/** What the ledger itself costs; a local one costs nothing. */
export interface LedgerFees {
  currency: string;
  amount: number;
}

/** The levels of proof that the offline part has the material for. */
export interface Levels {
  integrity: boolean;
  signed: boolean;
  witnessed: boolean;
  anchored: boolean;
}

/** The message is read; an event only when it was not before. */
export interface MarkedRead {
  messageId: string;
  eventId?: string;
  status: "read";
}

/** Where the message stands. */
export interface MessageAdded {
  messageId: string;
  taskId: string;
  eventId: string;
}

/** Who has taken a message. */
export interface MessageTaken {
  agent_id: string;
}

/** An inbox message. */
export interface MessageView {
  messageId: string;
  to: string;
  sender: string;
  priority: number;
  messageType: string;
  subject?: string;
  body?: string;
  actionRequired: boolean;
  refTaskId?: string;
  sentAt: string;
  readAt?: string | null;
  erased?: boolean;
}

/** Another claim won. Do not try the same task again at once; ask for the next one. */
export interface Missed {
  status: "missed";
  taskId: string;
  agentId: string;
  reason: string;
  winningClaimId: string;
  winningAgentId: string;
  eventId: string;
  next: NextStep;
}

/** What an agent may be given. */
export interface NewAgent {
  id?: string | null;
  name?: string | null;
  lead?: boolean;
  status?: string | null;
}

/** A durable output, in one of three ways: its content, content put before by hash, or a URI with the hash. */
export interface NewArtifact {
  name: string;
  content?: unknown;
  contentBase64?: string | null;
  uri?: string | null;
  sha256?: string | null;
  bytes?: number | null;
  mediaType?: string | null;
  readiness?: "draft" | "final" | "ready";
  artifactId?: string | null;
  derivedFrom?: string[];
}

/** A reviewer's concern about work in progress. */
export interface NewConcern {
  concern: string;
  severity?: "blocking" | "info" | "major" | "minor";
}

/** The plan of a new definition; a draft may still have errors. */
export interface NewDefinition {
  plan: Record<string, unknown>;
}

/** A key to make. A key with the scope agent is bound to one agent and acts as that agent only. */
export interface NewKey {
  scopes: Array<"admin" | "agent" | "operator" | "produce" | "read" | "runner">;
  name?: string | null;
  agentId?: string | null;
}

/** The payload of seed 000's inbox wire. `to` is an agent (id or slug), a role, or human; `toAgent` is the same. */
export interface NewMail {
  to?: string | null;
  toAgent?: string | null;
  priority?: number;
  messageType?: "exec.gate" | "info" | "question" | "status.update" | "task.blocked" | "task.feedback";
  refTaskId?: string | null;
  subject: string;
  body?: string;
  actionRequired?: boolean;
  agentId?: string | null;
}

/** A queue; without an id it is named after its name. */
export interface NewQueue {
  leaseSeconds?: number | null;
  maxAttempts?: number | null;
  priority?: "high" | "low" | "normal" | "urgent" | null;
  paused?: boolean | null;
  allowSecrets?: boolean | null;
  maxLiveClaims?: number | null;
  maxLeaseLosses?: number | null;
  id?: string;
  name: string;
  description?: string;
}

/** A role; without an id it is named after its name. */
export interface NewRole {
  id?: string;
  name: string;
  description?: string;
  capabilities?: string[];
}

/** The rules to fold later records under. */
export interface NewRules {
  rules: number;
}

/** What a session may be given. */
export interface NewSession {
  id?: string | null;
  name?: string | null;
  policy?: "guarded" | "open";
  reuse?: boolean;
}

/** A simple role task. Any active agent that has its roles and capabilities may claim it. */
export interface NewTask {
  title: string;
  description?: string;
  queueId?: string | null;
  workflowId?: string | null;
  requiredRoles?: string[];
  requiredCapabilities?: string[];
  dependsOn?: string[];
  priority?: "high" | "low" | "normal" | "urgent" | null;
  input?: unknown;
  brief?: Record<string, unknown> | null;
  contextId?: string;
  parentTaskId?: string | null;
  referenceTaskIds?: string[];
  outputs?: string[];
  completionCriteria?: string[];
  retry?: Retry | null;
  leaseSeconds?: number | null;
  deadlineSeconds?: number | null;
  approvalGate?: boolean | Gate;
}

/** Up to 500 tasks; each gets its own result. */
export interface NewTasks {
  tasks: NewTask[];
}

/** The plan of the next version's draft; that of the last version when none is given. */
export interface NewVersion {
  plan?: Record<string, unknown> | null;
}

/** A plan to run on a queue, or a published definition and its version, the last one by default. `input` is what this run is given: every task of it sees it. */
export interface NewWorkflow {
  queueId: string;
  plan?: Record<string, unknown> | null;
  definitionId?: string | null;
  version?: number | null;
  input?: Record<string, unknown> | null;
}

/** A workspace to begin. */
export interface NewWorkspace {
  name?: string | null;
}

/** An agent asks for the next tasks of a queue that it may claim. */
export interface Next {
  agentId: string;
  leaseSeconds?: number | null;
  count?: number | null;
  wait?: number;
  idempotencyKey?: string | null;
}

/** What to do now: one action, and what it is about. */
export interface NextStep {
  action: string;
  queueId?: string;
  roleId?: string;
  agentId?: string;
  taskId?: string;
  detail?: string;
}

/** Nothing in the queue that this agent may claim now. */
export interface NoTasks {
  status: "no_tasks";
  agentId: string;
  queueId: string;
  next: NextStep;
}

/** A task in the graph of a run. */
export interface Node {
  id: string;
  taskId?: string;
  title?: string;
  role: string;
  state: string;
  level: number;
  gated?: boolean;
}

/** Everything that a verifier needs beside keys. `proof` is a C2SP tlog-proof, `content` bodies in base64, `anchor` mirror rows; `attestation` has the key id and signature of each signer of the document, which sign under the checkpoint's origin. */
export interface Offline {
  wire: string;
  internal: Internal;
  proof: string;
  signers?: SignerTerm[];
  content?: string[];
  anchor?: Array<Record<string, unknown>>;
  attestation?: string[];
}

/** Who acted, or what was acted on. */
export interface Party {
  type: string;
  id: string;
}

/** How the holder means to go about it. */
export interface Plan {
  plan: Record<string, unknown> | unknown[];
}

/** A plan to be looked at. */
export interface PlanBody {
  plan: Record<string, unknown>;
}

/** What a workspace decides for itself. `blockRoutes`: blocker type -> roles that are told. */
export interface Policy {
  workspaceId: string;
  rules: number;
  blockRoutes: Record<string, string[]>;
}

/** What was changed; nothing was recorded when all of it was so before. */
export interface PolicyChange {
  workspaceId: string;
  blockRoutes: Record<string, string[]>;
  eventId: string | null;
}

/** Policies to set; what is not named stays. */
export interface PolicyPatch {
  blockRoutes: Record<string, string[]>;
}

/** Prices that hold from this event on. */
export interface Priced {
  status: "priced";
  workspaceId: string;
  version: number;
  eventId: string;
}

/** What requests cost, by event type; a type that is not named costs one credit. */
export interface Prices {
  prices: Record<string, number>;
  workspaceId?: string | null;
}

/** Why a request was refused, and what to do next. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  code: string;
  detail: string;
  advice: string;
  errors?: Wrong[];
}

/** A version that can be run and never changes. */
export interface PublishedView {
  definitionId: string;
  version: number;
  status: "published";
  eventId: string;
  validation: ValidationView;
}

/** What to change about a queue. */
export interface QueuePatch {
  leaseSeconds?: number | null;
  maxAttempts?: number | null;
  priority?: "high" | "low" | "normal" | "urgent" | null;
  paused?: boolean | null;
  allowSecrets?: boolean | null;
  maxLiveClaims?: number | null;
  maxLeaseLosses?: number | null;
  name?: string | null;
  description?: string | null;
}

/** A queue and what it decides for its tasks. */
export interface QueueView {
  queueId: string;
  name?: string;
  description?: string;
  leaseSeconds: number;
  maxAttempts: number;
  priority: string;
  paused: boolean;
  allowSecrets: boolean;
  maxLiveClaims: number;
  maxLeaseLosses: number;
  createdAt: string | null;
  erased?: boolean;
}

/** Later records fold under these rules. */
export interface RaisedRules {
  workspaceId: string;
  rules: number;
  eventId: string;
}

/** The server takes requests, and its store can be read and written. */
export interface Readiness {
  store: string;
  status?: "ready";
}

/** One thing that stands between a task and its being done. */
export interface Reason {
  code: string;
  message: string;
  next: NextStep;
}

/** The document. */
export interface Receipt {
  eventId: string;
  type: string;
  sequence: number;
  timestamp: string;
  actor: Party;
  subject: Party;
  verification: Verification;
  effect: Effect;
  levels: Levels;
  offline?: Offline | null;
}

/** Who gets the message on the ledger: an agent, a role or human; its receiver when nobody is named. */
export interface Recording {
  to?: string | null;
  priority?: number;
}

/** An Agent Card, given or to be fetched. What it says is kept as data; the agent's id is never the card's. */
export interface RegisterCard {
  workspaceId?: string;
  agentCardUrl?: string;
  agentCard?: Record<string, unknown> | null;
  framework?: string;
  eligibleRoles?: string[];
  issueKey?: boolean;
}

/** The agent as it was registered; `apiKey` is shown here and never again. */
export interface Registered {
  agentId: string;
  slug: string;
  active: boolean;
  lost: boolean;
  name?: string;
  description?: string;
  framework?: string;
  endpoint?: string;
  endpoints?: EndpointView[];
  cardFormat?: string;
  version?: string;
  provider?: string;
  capabilities: string[];
  skills?: SkillView[];
  authRequirements?: AuthRequirementView[];
  features?: string[];
  verification: VerificationView;
  eligibleRoles?: string[];
  roles: string[];
  liveClaims: number;
  capacity?: number | null;
  inUse?: number | null;
  registeredAt: string;
  lastActAt: string;
  cardUrl?: string;
  card?: Record<string, unknown> | null;
  erased?: boolean;
  eventId: string;
  apiKey?: string;
  warnings?: Advice[];
}

/** The agent may not claim this. A claim-next that is rejected names no task and writes no event. */
export interface Rejected {
  status: "rejected";
  taskId?: string;
  agentId: string;
  reason: string;
  detail?: string;
  eventId?: string;
  next: NextStep;
}

/** What is missing; whoever tries again reads it. */
export interface Rejection {
  note: string;
}

/** How often a task is tried, and what follows a failure: another attempt, the end, or waiting for somebody. */
export interface Retry {
  maxAttempts: number;
  onFailure?: "block" | "fail" | "reopen";
}

/** A key that is no longer valid. */
export interface RevokedKey {
  keyId: string;
  status: "revoked";
  eventId: string;
}

/** A role: eligibility to claim certain tasks. */
export interface RoleView {
  id: string;
  name?: string;
  description?: string;
  capabilities: string[];
  agents: string[];
  createdAt: string | null;
  erased?: boolean;
}

/** One message that was sent. */
export interface Sent {
  messageId: string;
  to: string;
  eventId: string;
}

/** What was sent; to a role, one message went to each active agent that has it. */
export interface SentMail {
  messageId: string;
  eventId: string;
  messages: Sent[];
}

/** What this authorization server can do (RFC 8414). */
export interface ServerMetadata {
  issuer: string;
  token_endpoint: string;
  jwks_uri: string;
  scopes_supported: string[];
  response_types_supported: string[];
  grant_types_supported: string[];
  token_endpoint_auth_methods_supported: string[];
  service_documentation: string;
}

/** What happened, to whom, at which place in the workspace's order. */
export interface ShownEvent {
  eventId: string;
  type: string;
  sequence: number;
  timestamp: string;
  actor: Party;
  subject: Party;
  data: Record<string, unknown>;
}

/** A signer of this log as the ledger tells it: added at a sequence, perhaps retired at another. */
export interface SignerTerm {
  key: string;
  added: number;
  retired?: number | null;
}

/** What an agent says it can do. */
export interface SkillView {
  id: string;
  name?: string;
  description?: string;
  tags?: string[];
}

/** A run, with the tasks that are open from the start, by their ids in the plan. */
export interface StartedWorkflow {
  workflowId: string;
  status: "running";
  availableTasks: string[];
  eventId: string;
  definitionId?: string;
  version?: number | null;
  validation: ValidationView;
}

/** One task of a run: where it stands, since when, who has it, and what it waits for. */
export interface StepView {
  planTaskId: string;
  taskId?: string;
  title?: string;
  role: string;
  state: string;
  since?: string | null;
  attempt: number;
  maxAttempts: number;
  priority: string;
  dependsOn?: string[];
  blockedBy?: string[];
  waitsBecause?: string;
  claim?: ClaimView | null;
  blockerType?: string;
  failure?: FailureView | null;
  cancelledBecause?: string;
  deadlineAt?: string | null;
  gate?: GateView | null;
  outputs?: string[];
  artifactIds?: string[];
  completedBy?: string;
  endedAt?: string | null;
}

/** Where the task stands now. */
export interface TaskChanged {
  taskId: string;
  status: string;
  attempt: number;
  eventId: string;
}

/** One message about a task. */
export interface TaskMessage {
  messageId: string;
  role: string;
  sender: string;
  parts: Array<TextPart | ArtifactPart | DataPart | FilePart>;
  metadata?: Record<string, string | number | boolean | null> | null;
  at: string;
  eventId: string;
  sequence: number;
  erased?: boolean;
}

/** What became of one task of a batch: it was created, or there is a problem with it. */
export interface TaskResult {
  task?: Created | null;
  problem?: Problem | null;
}

/** What became of each task, in the order of the request. */
export interface TaskResults {
  items: TaskResult[];
}

/** A task in a list. */
export interface TaskSummary {
  taskId: string;
  queueId: string;
  workflowId?: string;
  planTaskId?: string;
  title?: string;
  state: string;
  attempt: number;
  priority: string;
  requiredRoles: string[];
  requiredCapabilities: string[];
  agentId?: string;
  createdAt: string;
  updatedAt: string;
  erased?: boolean;
}

/** A task in full: what is asked, where it stands, how it went. */
export interface TaskView {
  taskId: string;
  queueId: string;
  workflowId?: string;
  planTaskId?: string;
  title?: string;
  state: string;
  attempt: number;
  priority: string;
  requiredRoles: string[];
  requiredCapabilities: string[];
  agentId?: string;
  createdAt: string;
  updatedAt: string;
  erased?: boolean;
  contextId: string;
  parentTaskId?: string;
  referenceTaskIds?: string[];
  description?: string;
  input?: unknown;
  brief?: Record<string, unknown> | null;
  completionCriteria?: string[];
  outputs?: string[];
  outputContract?: Record<string, unknown> | null;
  dependsOn?: string[];
  waitsFor?: string[];
  maxAttempts: number;
  leaseSeconds?: number | null;
  deadlineAt?: string | null;
  claim?: ClaimView | null;
  blocker?: BlockerView | null;
  failure?: FailureView | null;
  cancelledBecause?: string;
  gateId?: string;
  note?: string;
  answer?: string;
  artifacts?: ArtifactView[];
  output?: unknown;
  summary?: string;
  notes?: string;
  completedBy?: string;
  leaseLosses?: number;
  endedAt?: string | null;
  sequence?: number | null;
}

/** Words. */
export interface TextPart {
  kind: "text";
  mediaType?: string | null;
  name?: string | null;
  text: string;
}

/** An access token. */
export interface TokenReply {
  access_token: string;
  token_type: "Bearer";
  expires_in: number;
  scope: string;
}

/** The form. Client id and secret come here or by HTTP Basic, not by both; `scope` asks for fewer than all. A token may have every scope that its key includes: admin includes produce, runner and read, and each of produce, runner and agent includes read. */
export interface TokenRequest {
  grant_type: "client_credentials";
  scope?: string | null;
  client_id?: string | null;
  client_secret?: string | null;
}

/** An artifact of a task that this one depends on; `sha256` is that of its bytes. */
export interface UpstreamView {
  name: string;
  artifactId: string;
  taskId: string;
  planTaskId: string;
  version: number;
  sha256: string;
  bytes: number;
  mediaType?: string;
  uri?: string;
  erased?: boolean;
}

/** The figures of one day, type or agent; the one that was asked for is named. */
export interface UsageGroup {
  events?: number;
  claims?: number;
  misses?: number;
  rejected?: number;
  bytes?: number;
  credits?: number;
  day?: string | null;
  type?: string | null;
  agentId?: string | null;
}

/** What the workspace used. */
export interface UsageReply {
  by: "agent" | "day" | "type";
  total: Figures;
  items: UsageGroup[];
}

/** Whether a plan may run; errors stand against it, warnings are advice. */
export interface ValidationView {
  valid: boolean;
  errors: FindingView[];
  warnings: FindingView[];
}

/** What the server says of the proof: `pending` until a checkpoint covers the record. */
export interface Verification {
  status: "pending" | "verified";
  provider: string;
  receiptUrl: string;
}

/** Whether anybody vouches for the card: the id of a pinned key that signed it, or an admin's word. */
export interface VerificationView {
  status: string;
  keyId?: string;
}

/** One published version. */
export interface VersionView {
  version: number;
  publishedAt: string;
  publishedBy: string;
  eventId: string;
}

/** Where the run stands now; an event only when that changed. */
export interface WorkflowChanged {
  workflowId: string;
  status: "cancelled" | "paused" | "running";
  eventId?: string;
}

/** A run in full. */
export interface WorkflowState {
  workflowId: string;
  status: "cancelled" | "completed" | "failed" | "paused" | "running";
  name?: string;
  description?: string;
  queueId: string;
  definitionId?: string;
  version?: number | null;
  counts: Counts;
  startedAt: string;
  endedAt?: string | null;
  erased?: boolean;
  availableTasks: string[];
  criticalPath: string[];
  maxParallelTasks: number;
  tasks: StepView[];
  sequence: number;
}

/** A run in a list. */
export interface WorkflowView {
  workflowId: string;
  status: "cancelled" | "completed" | "failed" | "paused" | "running";
  name?: string;
  description?: string;
  queueId: string;
  definitionId?: string;
  version?: number | null;
  counts: Counts;
  startedAt: string;
  endedAt?: string | null;
  erased?: boolean;
}

/** A workspace. */
export interface WorkspaceView {
  workspaceId: string;
  name: string | null;
  createdAt: string;
}

/** One thing wrong with a request: where (a JSON pointer into the body, or a parameter's name) and what. */
export interface Wrong {
  code: string;
  pointer: string;
  message: string;
}

/** What is said about a task, in parts. */
export interface ApiNewMessage {
  parts: Array<TextPart | ArtifactPart | DataPart | FilePart>;
  metadata?: Record<string, string | number | boolean | null> | null;
}

/** A message to some agents, or to the leads or all agents of the session. */
export interface BusNewMessage {
  text?: string;
  agent_ids?: string[];
  to?: "agents" | "leads" | null;
  src?: string;
  kind?: "control" | "reply" | "system" | "user";
  conversation_id?: string | null;
  conversation_owner?: string | null;
  parent_message_id?: string | null;
  reply_to?: string | null;
  ack?: Ack | null;
}
