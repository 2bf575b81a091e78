// Written by `python -m tools.typescript` from the OpenAPI document; `make verify` proves it current.

/** One page of a list; `next` is the cursor of the page that follows, null when there is none. */
export interface Page<Item> {
  items: Item[];
  next?: string | null;
}

/** An access token. */
export interface AccessToken {
  access_token: string;
  token_type: "Bearer";
  expires_in: number;
  scope: string;
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

/** An agent: what its card says, which is data from a stranger, and what the ledger knows. */
export interface Agent {
  agentId: string;
  slug: string;
  active: boolean;
  lost: boolean;
  name?: string;
  description?: string;
  framework?: string;
  endpoint?: string;
  endpoints: Endpoint[];
  cardFormat?: string;
  version?: string;
  provider?: string;
  capabilities: string[];
  skills: Skill[];
  authRequirements: AuthRequirement[];
  features: string[];
  verification: AgentVerification;
  eligibleRoles: string[];
  roleMatches: RoleMatch[];
  roles: string[];
  liveClaims: number;
  capacity?: number | null;
  inUse?: number | null;
  pause?: string;
  pausedUntil?: string | null;
  account?: string;
  registeredAt: string;
  lastActAt: string;
  cardUrl?: string;
  card?: Record<string, unknown> | null;
  erased?: boolean;
}

/** A heartbeat, how much work the agent can take and has, and whether it claims nothing for a while. */
export interface AgentBeat {
  capacity?: number | null;
  inUse?: number | null;
  pause?: "cost_cap" | "none" | "start_failed" | "usage_limit" | null;
  pauseSeconds?: number;
  account?: string;
}

/** The heartbeat was received; only one that changes something is an event. */
export interface AgentHeard {
  agentId: string;
  status: "alive";
  eventId?: string;
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

/** An Agent Card, given or to be fetched. What it says is kept as data; the agent's id is never the card's. */
export interface AgentRegistration {
  agentCard?: Record<string, unknown> | null;
  agentCardUrl?: string;
  framework?: string;
  eligibleRoles?: string[];
  issueKey?: boolean;
  workspaceId?: string;
}

/** Who vouches for the card: the id of a pinned key that signed it, or an admin. */
export interface AgentVerification {
  status: string;
  keyId?: string;
}

/** What lifts a block. */
export interface Answer {
  answer?: string;
}

/** A note that goes with the approval. */
export interface Approval {
  note?: string;
}

/** Who approves a completion beside the admins: keys, agents or roles; never the worker. */
export interface ApprovalGate {
  approvers?: string[];
  deadlineSeconds?: number | null;
  onDeadline?: "hold" | "reject";
}

/** An artifact of the current attempt; `sha256` is that of its bytes. */
export interface Artifact {
  artifactId: string;
  name: string;
  version: number;
  readiness: string;
  sha256: string;
  bytes: number;
  mediaType?: string;
  uri?: string;
  erased?: boolean;
  unverified?: boolean;
}

/** Where the artifact stands. */
export interface ArtifactAdded {
  artifactId: string;
  eventId: string;
  taskId: string;
  name: string;
  version: number;
  sha256: string;
  unverified?: boolean;
}

/** An artifact, by its id. */
export interface ArtifactPart {
  kind: "artifact_ref";
  mediaType?: string | null;
  name?: string | null;
  artifactId: string;
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
  upstream?: Upstream[];
  results?: UpstreamResult[];
  workflowInput?: unknown;
  note?: string;
  priorContext?: string[];
  answer?: string;
  erased?: boolean;
}

/** How an agent asks its callers to authenticate. */
export interface AuthRequirement {
  name: string;
  type?: string;
}

/** One completion of a batch. */
export interface BatchedCompletion {
  output?: unknown;
  artifacts?: NewArtifact[];
  summary?: string;
  artifactIds?: string[];
  costUsd?: number;
  durationSeconds?: number | null;
  semantic?: "fail" | "pass" | "skipped";
  attempts?: number;
  notes?: string;
  claimNext?: ClaimNext | null;
  claimId: string;
}

/** What stands in the way, and who or what could lift it. */
export interface BlockReport {
  reason: string;
  blockerType: "ambiguity" | "auth" | "dependency" | "resource" | "spec_gap" | "tool_failure" | "verification_fail";
  suggestedResolution?: string;
  dependsOn?: string[];
}

/** Why a task stands still, in the words of the agent that met it. */
export interface Blocker {
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

/** What may be changed of an agent; what is absent stays. */
export interface BusAgentChange {
  name?: string | null;
  lead?: boolean | null;
  status?: string | null;
}

/** All agents of a session, each once. */
export interface BusAgentOrder {
  agent_ids: string[];
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

/** Who has taken a message. */
export interface BusMessageTaken {
  agent_id: string;
}

/** Who gets the message in the inbox: an agent, a role or human. Without `to` it is the receiver on the bus. */
export interface BusRecording {
  to?: string | null;
  priority?: number;
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

/** A session that was created, changed or closed: the record, and the session as it is now. */
export interface BusSessionEvent {
  id: string;
  session_id: string;
  agent_id: string;
  type: string;
  event_type: string;
  created_at: string;
  payload: Record<string, unknown>;
  session: BusSession | null;
}

/** A signed head of the workspace's log: how many records, and the root over them. `note` is what was signed. `keys` are the log's verifier keys, to be handed on by a way you trust: a key that comes with a receipt proves nothing. */
export interface Checkpoint {
  origin: string;
  size: number;
  root: string;
  note: string;
  keys: string[];
}

/** What became of a claim. */
export interface ClaimChanged {
  status: "started" | "released" | "blocked" | "planned" | "completed" | "failed";
  taskId: string;
  claimId: string;
  eventId: string;
}

/** A claim that has ended; `next` is the claim that was asked for with it. */
export interface ClaimEnded {
  status: "started" | "released" | "blocked" | "planned" | "completed" | "failed";
  taskId: string;
  claimId: string;
  eventId: string;
  retry?: boolean | null;
  gateId?: string;
  next?: Claimed | Missed | Rejected | NoTasks | null;
}

/** One claim and its outcome. */
export interface ClaimHistoryItem {
  taskId: string;
  claimId: string;
  status: "claimed" | "missed" | "rejected";
  ended?: "" | "held" | "completed" | "failed" | "released" | "blocked" | "expired" | "stalled" | "cancelled";
  reason?: string;
  winningClaimId?: string;
  winningAgentId?: string;
  leaseExpiresAt?: string;
  at: string;
  eventId: string;
  sequence: number;
}

/** The claim that a busy worker asks for together with the end of the one before. */
export interface ClaimNext {
  queueId: string;
  leaseSeconds?: number | null;
}

/** An agent asks for the next tasks of a queue that it may claim. */
export interface ClaimNextRequest {
  agentId: string;
  leaseSeconds?: number | null;
  count?: number | null;
  wait?: number;
  idempotencyKey?: string | null;
}

/** An agent asks for a task. */
export interface ClaimRequest {
  agentId: string;
  leaseSeconds?: number | null;
  withTask?: boolean;
  idempotencyKey?: string | null;
}

/** What became of one claim of a batch: it was completed, or there is a problem with it. */
export interface ClaimResult {
  claim?: ClaimEnded | null;
  problem?: Problem | null;
}

/** What became of each claim, in the order of the request. */
export interface ClaimResults {
  items: ClaimResult[];
}

/** What the task has cost so far, and what the caps of the workspace leave. Stop when a cap is reached. */
export interface ClaimSpending {
  taskId: string;
  claimId: string;
  costUsd: number;
  leftUsd: number | null;
  cap?: string;
  eventId?: string;
}

/** The task is this agent's until the lease expires. `task` comes when asked for, and always with claim-next; without it, `upstream` and `results` are what the tasks before this one brought. */
export interface Claimed {
  status: "claimed";
  taskId: string;
  claimId: string;
  agentId: string;
  leaseExpiresAt: string;
  eventId: string;
  upstream?: Upstream[];
  results?: UpstreamResult[];
  task?: Assignment | null;
  claims?: Claimed[] | null;
}

/** What was done. Required outputs must have ready artifacts; the server checks that itself, and names them beside those in `artifactIds`. Without `artifactIds` every ready artifact is named; more than four go by a manifest. `artifacts` are added with the completion. A required output without one is taken from the field of its name in `output`. */
export interface Completion {
  output?: unknown;
  artifacts?: NewArtifact[];
  summary?: string;
  artifactIds?: string[];
  costUsd?: number;
  durationSeconds?: number | null;
  semantic?: "fail" | "pass" | "skipped";
  attempts?: number;
  notes?: string;
  claimNext?: ClaimNext | null;
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

/** How many tasks of a run are in which state. */
export interface Counts {
  total: number;
  completed: number;
  failed: number;
  cancelled: number;
  open: number;
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

/** A new task and where it stands. */
export interface CreatedTask {
  taskId: string;
  queueId: string;
  status: string;
  eventId: string;
  warnings?: Advice[];
}

/** A new webhook. Its secret signs what it gets, and is shown this once. */
export interface CreatedWebhook {
  webhookId: string;
  secret: string;
  eventId: string;
}

/** A workspace that was begun, and its first key (scope admin), which is shown here and never again. */
export interface CreatedWorkspace {
  workspaceId: string;
  keyId: string;
  apiKey: string;
  eventId: string;
}

/** What may be spent. Before the first grant nothing is limited, and there is no balance. */
export interface Credits {
  granted: number;
  used: number;
  balance: number | null;
  unit: string;
  prices: Record<string, number>;
  ledgerFees: LedgerFees;
}

/** Credits for a workspace, the caller's own when none is named. */
export interface CreditsGrant {
  amount: number;
  unit?: string;
  workspaceId?: string | null;
}

/** Credits that were granted. */
export interface CreditsGranted {
  status: "granted";
  workspaceId: string;
  amount: number;
  unit: string;
  eventId: string;
}

/** Small JSON. */
export interface DataPart {
  kind: "data";
  mediaType?: string | null;
  name?: string | null;
  data: unknown;
}

/** The agent may claim nothing more. */
export interface DeactivatedAgent {
  agentId: string;
  eventId: string;
  status: "deactivated";
}

/** A definition with its published plan and its draft, apart. `plan` is one of them: that of the version asked for, else the draft's, else the published one; `shownVersion` says which. */
export interface Definition {
  definitionId: string;
  name?: string;
  status: "draft" | "published";
  version?: number | null;
  draftVersion?: number | null;
  erased?: boolean;
  published?: PublishedPlan | null;
  draft?: DraftPlan | null;
  shownVersion: number;
  revision?: number | null;
  plan?: Record<string, unknown> | null;
  validation?: Validation | null;
  versions: Version[];
}

/** A definition in a list. `version` is the last published one, `draftVersion` the one that is being edited. */
export interface DefinitionSummary {
  definitionId: string;
  name?: string;
  status: "draft" | "published";
  version?: number | null;
  draftVersion?: number | null;
  erased?: boolean;
}

/** A draft; `validation` says what keeps it from being published. */
export interface Draft {
  definitionId: string;
  version: number;
  status: "draft";
  name?: string;
  revision: number;
  validation: Validation;
  updatedAt: string;
}

/** What to change about the draft's plan: a JSON merge patch (RFC 7396). `revision` is the one it must have. */
export interface DraftChange {
  plan: Record<string, unknown>;
  revision?: number | null;
}

/** The plan that is being edited. */
export interface DraftPlan {
  version: number;
  revision: number;
  plan: Record<string, unknown>;
}

/** `to` waits for `source`. */
export interface Edge {
  source: string;
  to: string;
}

/** Where an agent says it is reached. */
export interface Endpoint {
  url: string;
  binding?: string;
  protocolVersion?: string;
}

/** Content that is gone; its hash stays on the ledger. */
export interface ErasedContent {
  sha256: string;
  status: "erased";
  eventId: string;
}

/** What happened, to whom, at which place in the workspace's order; `data` is the payload of its wire. */
export interface Event {
  eventId: string;
  type: string;
  sequence: number;
  timestamp: string;
  actor: Party;
  subject: Party;
  data: Record<string, unknown>;
}

/** Where a task stands, and what would move it. */
export interface Explanation {
  taskId: string;
  state: string;
  running: boolean;
  reasons: Reason[];
}

/** How a task failed. */
export interface Failure {
  kind: string;
  reason?: string;
}

/** Why it could not be done. */
export interface FailureReport {
  reason: string;
  kind?: "error" | "rejected" | "timeout" | "verification";
  claimNext?: ClaimNext | null;
}

/** A file elsewhere, and the hash of its bytes where it is known. */
export interface FilePart {
  kind: "file_ref";
  mediaType?: string | null;
  name?: string | null;
  uri: string;
  sha256?: string | null;
}

/** The first ids that begin with a prefix, in their order. */
export interface FoundIds {
  items: string[];
  complete: boolean;
}

/** An approval that a completed task waits for, or how it was decided. */
export interface Gate {
  gateId: string;
  state: "open" | "approved" | "rejected" | "cancelled";
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
  selfApproval?: boolean;
  selfApproved?: boolean;
  note?: string;
}

/** A gate that is closed; `retry` says of a rejection whether another attempt follows. */
export interface GateDecided {
  gateId: string;
  status: "approved" | "rejected";
  taskId: string;
  workflowId?: string;
  retry?: boolean | null;
  eventId: string;
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
  status: "ok";
}

/** Whether the claim still holds its task, and until when. A stalled hold goes on with its holder's next act. After its end, the state of the task that this claim was the last to hold. */
export interface Heartbeat {
  state: "held" | "stalled" | "lease_lost" | "completed" | "failed" | "cancelled";
  leaseExpiresAt?: string | null;
  eventId?: string;
}

/** What a process that keeps a claim without a handler says of its holder; a running handler counts as activity. */
export interface HolderActivity {
  idleSeconds?: number;
}

/** How the holder means to go about it. */
export interface HolderPlan {
  plan: Record<string, unknown> | unknown[];
}

/** An inbox message. */
export interface InboxMessage {
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
export interface KeptContent {
  sha256: string;
  bytes: number;
}

/** A key as lists show it: by its prefix, never its secret. */
export interface Key {
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

/** A code that is good once; `url` is the page that takes it. */
export interface LoginCode {
  secret: string;
  url: string;
  expiresAt: string;
}

/** A code, and the scopes that the token is to have, with one space between; all of the key's if none are named. */
export interface LoginCodeExchange {
  code: string;
  scope?: string;
}

/** An access token for a browser. */
export interface LoginToken {
  accessToken: string;
  scopes: string[];
  expiresAt: string;
}

/** Where the message stands. */
export interface MessageAdded {
  messageId: string;
  taskId: string;
  eventId: string;
}

/** The message is read; an event only when it was not before. */
export interface MessageRead {
  messageId: string;
  eventId?: string;
  status: "read";
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

/** What calls of one model used; without `model`, of one that is not named. */
export interface ModelUsage {
  model?: string;
  costUsd?: number;
  inputTokens?: number;
  outputTokens?: number;
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

/** What an agent may be given. */
export interface NewBusAgent {
  id?: string | null;
  name?: string | null;
  lead?: boolean;
  status?: string | null;
}

/** A message to some agents, or to the leads or all agents of the session. */
export interface NewBusMessage {
  text?: string;
  agent_ids?: string[];
  to?: "agents" | "leads" | null;
  src?: string;
  kind?: string;
  conversation_id?: string | null;
  conversation_owner?: string | null;
  parent_message_id?: string | null;
  reply_to?: string | null;
  ack?: Ack | null;
}

/** What a session may be given. */
export interface NewBusSession {
  id?: string | null;
  name?: string | null;
  policy?: "guarded" | "open";
  reuse?: boolean;
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

/** The payload of seed 000's inbox wire. `to` is an agent (id or slug), a role, or human; `toAgent` is the same. */
export interface NewInboxMessage {
  to?: string | null;
  toAgent?: string | null;
  subject: string;
  body?: string;
  priority?: number;
  messageType?: "exec.gate" | "info" | "question" | "status.update" | "task.blocked" | "task.feedback";
  refTaskId?: string | null;
  actionRequired?: boolean;
  agentId?: string | null;
}

/** A key to make. A key with the scope agent is bound to one agent and acts as that agent only. */
export interface NewKey {
  scopes: Array<"admin" | "agent" | "operator" | "produce" | "read" | "runner">;
  name?: string | null;
  agentId?: string | null;
}

/** What is said about a task, in parts. */
export interface NewMessage {
  parts: Array<TextPart | ArtifactPart | DataPart | FilePart>;
  metadata?: Record<string, string | number | boolean | null> | null;
}

/** What requests cost, by event type; a type that is not named costs one credit. */
export interface NewPrices {
  prices: Record<string, number>;
  workspaceId?: string | null;
}

/** How far the work has come: a sentence, a percentage, or both. */
export interface NewProgress {
  text?: string;
  percent?: number | null;
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
  idleSeconds?: number | null;
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

/** A simple role task. Any active agent that has its roles and capabilities may claim it. */
export interface NewTask {
  title: string;
  description?: string;
  queueId?: string | null;
  requiredRoles?: string[];
  requiredCapabilities?: string[];
  dependsOn?: string[];
  priority?: "high" | "low" | "normal" | "urgent" | null;
  input?: unknown;
  brief?: Record<string, unknown> | null;
  workflowId?: string | null;
  contextId?: string;
  parentTaskId?: string | null;
  referenceTaskIds?: string[];
  outputs?: string[];
  completionCriteria?: string[];
  retry?: Retry | null;
  leaseSeconds?: number | null;
  deadlineSeconds?: number | null;
  approvalGate?: boolean | ApprovalGate;
}

/** Up to 500 tasks; each gets its own result. */
export interface NewTasks {
  tasks: NewTask[];
}

/** What was used since the last report; an empty one asks what the caps leave. */
export interface NewUsage {
  usage: ModelUsage[];
}

/** The plan of the next version's draft; that of the last version when none is given. */
export interface NewVersion {
  plan?: Record<string, unknown> | null;
}

/** Where to send events, and which; all of them when no type is named. */
export interface NewWebhook {
  receiverUrl: string;
  types?: string[];
  description?: string | null;
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

/** What this authorization server can do (RFC 8414). */
export interface OAuthMetadata {
  issuer: string;
  token_endpoint: string;
  jwks_uri: string;
  scopes_supported: string[];
  response_types_supported: string[];
  grant_types_supported: string[];
  token_endpoint_auth_methods_supported: string[];
  service_documentation: string;
}

/** Who acted, or what was acted on. */
export interface Party {
  type: string;
  id: string;
}

/** A plan to check. */
export interface PlanBody {
  plan: Record<string, unknown>;
}

/** One error or warning about a plan: where it is, and what to do about it. */
export interface PlanFinding {
  code: string;
  path: string;
  message: string;
}

/** What a simulation found. `bottleneck` is the role whose tasks waited longest; `left` are tasks never done. */
export interface PlanForecast {
  finished: boolean;
  makespanSeconds: number;
  criticalPath: string[];
  criticalPathSeconds: number;
  roles: Record<string, RoleForecast>;
  bottleneck: string;
  waitedForRoomSeconds: number;
  mostAtWork: number;
  levels: number;
  records: number;
  left: string[];
}

/** A plan, and what its simulation takes for granted. */
export interface PlanSimulation {
  plan: Record<string, unknown>;
  agents?: Record<string, number>;
  seconds?: Record<string, number>;
  eachSeconds?: number;
  gateSeconds?: number;
}

/** Settings of a workspace, kept on its ledger. `blockRoutes`: by type of blocker, the roles that get a message. `costCaps`: dollars that may be spent on one task, run (`workflow`) or agent, or on one day (UTC) by all. `unverifiedOutputs`: whether a task may be completed with required outputs whose bytes RedKey did not see. */
export interface Policy {
  workspaceId: string;
  rules: number;
  blockRoutes: Record<string, string[]>;
  costCaps: Record<string, number>;
  selfApproval: boolean;
  receipts: ReceiptPolicy;
  unverifiedOutputs: string;
}

/** What was changed; nothing was recorded when all of it was so before. */
export interface PolicyChange {
  workspaceId: string;
  blockRoutes: Record<string, string[]>;
  costCaps: Record<string, number | null>;
  selfApproval?: boolean | null;
  receipts?: ReceiptPolicy | null;
  eventId: string | null;
  unverifiedOutputs?: string | null;
}

/** Policies to set; what is not named stays. A cap that is null is removed. */
export interface PolicyPatch {
  blockRoutes?: Record<string, string[]>;
  costCaps?: Record<string, number | null>;
  selfApproval?: boolean | null;
  receipts?: ReceiptPolicyPatch | null;
  unverifiedOutputs?: "allow" | "refuse" | null;
}

/** Prices that hold from this event on. */
export interface PricesSet {
  status: "priced";
  workspaceId: string;
  version: number;
  eventId: string;
}

/** Why a request was refused, and what to do next. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  code: string;
  detail: string;
  advice: string;
  errors: Wrong[];
}

/** How far the work had come when its holder last said so. */
export interface Progress {
  text?: string;
  percent?: number | null;
  at: string;
  erased?: boolean;
}

/** Whether the report was recorded: a claim has one record each second at most. The last report is what counts. */
export interface ProgressReported {
  taskId: string;
  claimId: string;
  recorded: boolean;
  reason?: string;
  retryAfterSeconds?: number | null;
  eventId?: string;
}

/** A version that can be run and never changes. */
export interface Published {
  definitionId: string;
  version: number;
  status: "published";
  eventId: string;
  validation: Validation;
}

/** The plan of the last published version; null when its text was erased. */
export interface PublishedPlan {
  version: number;
  plan: Record<string, unknown> | null;
}

/** A queue and what it decides for its tasks. */
export interface Queue {
  queueId: string;
  name?: string;
  description?: string;
  leaseSeconds: number;
  maxAttempts: number;
  priority: "urgent" | "high" | "normal" | "low";
  paused: boolean;
  allowSecrets: boolean;
  maxLiveClaims: number;
  maxLeaseLosses: number;
  idleSeconds: number;
  createdAt: string | null;
  erased?: boolean;
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
  idleSeconds?: number | null;
  name?: string | null;
  description?: string | null;
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
  status: "ready";
}

/** One thing that stands between a task and its being done. */
export interface Reason {
  code: string;
  message: string;
  next: NextStep;
}

/** The receipt of an event; `offline` is what it takes to verify it without the server. */
export interface Receipt {
  eventId: string;
  type: string;
  sequence: number;
  timestamp: string;
  actor: Party;
  subject: Party;
  verification: ReceiptVerification;
  effect: ReceiptEffect;
  levels: ReceiptLevels;
  offline?: ReceiptProof | null;
}

/** What the record did: inclusion proves that it is there, not that it changed anything. */
export interface ReceiptEffect {
  status: "applied" | "void";
  reason?: string | null;
}

/** What the ledger knows and normal users never need. */
export interface ReceiptInternal {
  topicId: string;
  payer: string;
  consensusTimestamp: string;
  previousRunningHash: string;
  runningHash: string;
}

/** The levels of proof that the offline part has the material for. */
export interface ReceiptLevels {
  integrity: boolean;
  signed: boolean;
  witnessed: boolean;
  anchored: boolean;
}

/** `public`: receipts open for everybody who has their link. */
export interface ReceiptPolicy {
  public: boolean;
}

/** Whether receipts open for everybody who has their link. */
export interface ReceiptPolicyPatch {
  public: boolean;
}

/** Everything that a verifier needs beside keys. `proof` is a C2SP tlog-proof, `content` bodies in base64, `anchor` mirror rows; `attestation` has the key id and signature of each signer of the document, which sign under the checkpoint's origin. */
export interface ReceiptProof {
  wire: string;
  internal: ReceiptInternal;
  proof: string;
  signers?: SignerTerm[];
  content?: string[];
  anchor?: Array<Record<string, unknown>>;
  attestation?: string[];
}

/** What the server says of the proof: `pending` until a checkpoint covers the record. */
export interface ReceiptVerification {
  status: "verified" | "pending";
  provider: string;
  receiptUrl: string;
}

/** The agent as it was registered; `apiKey` is shown here and never again. */
export interface RegisteredAgent {
  agentId: string;
  slug: string;
  active: boolean;
  lost: boolean;
  name?: string;
  description?: string;
  framework?: string;
  endpoint?: string;
  endpoints: Endpoint[];
  cardFormat?: string;
  version?: string;
  provider?: string;
  capabilities: string[];
  skills: Skill[];
  authRequirements: AuthRequirement[];
  features: string[];
  verification: AgentVerification;
  eligibleRoles: string[];
  roleMatches: RoleMatch[];
  roles: string[];
  liveClaims: number;
  capacity?: number | null;
  inUse?: number | null;
  pause?: string;
  pausedUntil?: string | null;
  account?: string;
  registeredAt: string;
  lastActAt: string;
  cardUrl?: string;
  card?: Record<string, unknown> | null;
  erased?: boolean;
  eventId: string;
  apiKey?: string;
  warnings?: Advice[];
}

/** The agent may not claim this. A claim-next that is rejected names no task and writes no event; nor does the claim of a task that the agent has completed itself (`completed_by_you`, `detail` is its claim). */
export interface Rejected {
  status: "rejected";
  taskId?: string;
  agentId: string;
  reason: string;
  detail?: string;
  eventId?: string;
  next: NextStep;
}

/** What is missing; the agent of the next attempt reads it. */
export interface Rejection {
  note: string;
}

/** A role that is gone, and the agents that held it. */
export interface RemovedRole {
  id: string;
  status: "removed";
  agents: string[];
  eventId: string;
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
export interface Role {
  id: string;
  name?: string;
  description?: string;
  capabilities: string[];
  agents: string[];
  createdAt: string | null;
  erased?: boolean;
}

/** How busy the agents of one role are, and how long tasks wait for them. */
export interface RoleForecast {
  agents: number;
  tasks: number;
  busySeconds: number;
  utilisation: number;
  waitedSeconds: number;
  longestWaitSeconds: number;
  mostWaiting: number;
}

/** Whether an agent has a role now; an event only when that changed. */
export interface RoleGrant {
  roleId: string;
  agentId: string;
  status: "granted" | "revoked";
  eventId?: string;
}

/** A role whose capabilities the agent's card covers, and the capabilities that matched. */
export interface RoleMatch {
  roleId: string;
  matched: string[];
}

/** What to change about a role; what is not named stays. */
export interface RolePatch {
  name?: string | null;
  description?: string | null;
  capabilities?: string[] | null;
}

/** One message that was sent. */
export interface SentMessage {
  messageId: string;
  to: string;
  eventId: string;
}

/** What was sent; to a role, one message went to each active agent that has it. */
export interface SentMessages {
  messageId: string;
  eventId: string;
  messages: SentMessage[];
}

/** A signer of this log as the ledger tells it: added at a sequence, perhaps retired at another. */
export interface SignerTerm {
  key: string;
  added: number;
  retired?: number | null;
}

/** What an agent says it can do. */
export interface Skill {
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
  validation: Validation;
}

/** One task of a run: its state and since when, its holder, and what it waits for. */
export interface Step {
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
  claim?: TaskHold | null;
  progress?: Progress | null;
  blockerType?: string;
  failure?: Failure | null;
  cancelledBecause?: string;
  deadlineAt?: string | null;
  gate?: Gate | null;
  outputs?: string[];
  artifactIds?: string[];
  completedBy?: string;
  endedAt?: string | null;
}

/** A task in full: what is asked, where it stands, how it went. */
export interface Task {
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
  progress?: Progress | null;
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
  dependsOn: string[];
  waitsFor?: string[];
  upstream?: Upstream[];
  results?: UpstreamResult[];
  maxAttempts: number;
  leaseSeconds?: number | null;
  deadlineAt?: string | null;
  claim?: TaskHold | null;
  blocker?: Blocker | null;
  failure?: Failure | null;
  cancelledBecause?: string;
  gateId?: string;
  note?: string;
  answer?: string;
  artifacts?: Artifact[];
  output?: unknown;
  summary?: string;
  notes?: string;
  completedBy?: string;
  leaseLosses?: number;
  costUsd?: number;
  durationSeconds?: number | null;
  endedAt?: string | null;
  sequence?: number | null;
}

/** Where the task stands now. */
export interface TaskChanged {
  taskId: string;
  status: string;
  attempt: number;
  eventId: string;
}

/** Who holds a task now, and until when. */
export interface TaskHold {
  claimId: string;
  agentId: string;
  claimedAt: string | null;
  startedAt?: string | null;
  leaseExpiresAt: string | null;
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
  task?: CreatedTask | null;
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
  progress?: Progress | null;
  createdAt: string;
  updatedAt: string;
  erased?: boolean;
}

/** Words. */
export interface TextPart {
  kind: "text";
  mediaType?: string | null;
  name?: string | null;
  text: string;
}

/** The form. Client id and secret come here or by HTTP Basic, not by both; `scope` asks for fewer than all. A token may have every scope that its key includes: admin includes produce, runner and read, and each of produce, runner and agent includes read. */
export interface TokenRequest {
  grant_type: "client_credentials";
  scope?: string | null;
  client_id?: string | null;
  client_secret?: string | null;
}

/** The role as it is now. */
export interface UpdatedRole {
  id: string;
  name?: string;
  description?: string;
  capabilities: string[];
  agents: string[];
  createdAt: string | null;
  erased?: boolean;
  eventId: string;
}

/** An artifact of a task that this one depends on; `sha256` is that of its bytes. */
export interface Upstream {
  name: string;
  artifactId: string;
  taskId: string;
  planTaskId?: string;
  version: number;
  sha256: string;
  bytes: number;
  mediaType?: string;
  uri?: string;
  erased?: boolean;
}

/** What a task that this one depends on was completed with. */
export interface UpstreamResult {
  taskId: string;
  planTaskId?: string;
  output?: unknown;
  summary?: string;
}

/** What was counted: recorded events, outcomes of claims, bytes on the ledger, credits, and what models cost. */
export interface UsageFigures {
  events: number;
  claims: number;
  misses: number;
  rejected: number;
  bytes: number;
  credits: number;
  costUsd: number;
  inputTokens: number;
  outputTokens: number;
}

/** The figures of one day, type, agent, model or task; the one that was asked for is named. */
export interface UsageGroup {
  events: number;
  claims: number;
  misses: number;
  rejected: number;
  bytes: number;
  credits: number;
  costUsd: number;
  inputTokens: number;
  outputTokens: number;
  day: string | null;
  type: string | null;
  agentId: string | null;
  model: string | null;
  taskId: string | null;
}

/** What the workspace used. */
export interface UsageReport {
  by: "day" | "type" | "agent" | "model" | "task";
  total: UsageFigures;
  items: UsageGroup[];
}

/** Whether a plan may run; a plan with errors may not, warnings are advice. */
export interface Validation {
  valid: boolean;
  errors: PlanFinding[];
  warnings: PlanFinding[];
}

/** One published version. */
export interface Version {
  version: number;
  publishedAt: string;
  publishedBy: string;
  eventId: string;
}

/** A webhook or a push notification config of A2A, and how far it has got. */
export interface Webhook {
  webhookId: string;
  kind: "push" | "webhook";
  receiverUrl: string;
  types?: string[];
  taskId?: string;
  description?: string;
  state: "ended" | "parked" | "retrying" | "waiting";
  sequence: number;
  delivered: number;
  attempts?: number;
  lastError?: string;
  lastDeliveredAt?: string | null;
  nextAttemptAt?: string | null;
}

/** What became of the webhook. */
export interface WebhookChanged {
  webhookId: string;
  status: "removed" | "resumed";
  eventId?: string;
}

/** A run in a list. */
export interface Workflow {
  workflowId: string;
  status: "running" | "paused" | "completed" | "failed" | "cancelled";
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

/** The state of the run now; an event only when that changed. */
export interface WorkflowChanged {
  workflowId: string;
  status: "running" | "paused" | "cancelled";
  eventId?: string;
}

/** A run in full. */
export interface WorkflowState {
  workflowId: string;
  status: "running" | "paused" | "completed" | "failed" | "cancelled";
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
  tasks: Step[];
  moreTasks?: TaskSummary[];
  sequence: number;
}

/** A workspace. */
export interface Workspace {
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
