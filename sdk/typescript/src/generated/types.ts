// Written by `python -m tools.typescript` from the OpenAPI document; `make verify` proves it current.

/** One page of a list; `next` is the cursor of the next page, null if there is none. */
export interface Page<Item> {
  items: Item[];
  next?: string | null;
}

/** A request that has its place in the order, told to a caller that does not wait for what it did. */
export interface Accepted {
  status: "accepted";
  eventId: string;
}

/** An access token. */
export interface AccessToken {
  access_token: string;
  token_type: "Bearer";
  expires_in: number;
  scope: string;
  refresh_token?: string | null;
}

/** How a message is confirmed: by the client, by the application, or not at all; and within what time. */
export interface Ack {
  mode?: string | null;
  timeout_ms?: number | null;
}

/** Something that is allowed but probably a mistake. */
export interface Advice {
  code: string;
  pointer: string;
  message: string;
}

/** An agent: what its card says, which is unverified data, and what the ledger knows. */
export interface Agent {
  id?: string;
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

/** A heartbeat: how much work the agent can take and has, and whether it pauses. */
export interface AgentBeat {
  extensions?: Record<string, unknown> | null;
  capacity?: number | null;
  inUse?: number | null;
  pause?: "cost_cap" | "none" | "start_failed" | "usage_limit" | null;
  pauseSeconds?: number;
  account?: string;
}

/** The heartbeat was received; an event is written only if something changed. */
export interface AgentHeard {
  agentId: string;
  status: "alive";
  eventId?: string;
}

/** What to change; a new card replaces the old one and its capabilities. */
export interface AgentPatch {
  extensions?: Record<string, unknown> | null;
  slug?: string;
  agentCard?: Record<string, unknown> | null;
  framework?: string | null;
  eligibleRoles?: string[] | null;
  verification?: "unverified" | "verified" | null;
  active?: boolean | null;
}

/** An Agent Card, in the request or at a URL. Its content is stored as data; the agent's id never comes from it. */
export interface AgentRegistration {
  extensions?: Record<string, unknown> | null;
  agentCard?: Record<string, unknown> | null;
  agentCardUrl?: string;
  framework?: string;
  eligibleRoles?: string[];
  issueKey?: boolean;
  workspaceId?: string;
  slot?: string;
}

/** Who vouches for the card: the id of the pinned key that signed it, or an admin. */
export interface AgentVerification {
  status: string;
  keyId?: string;
}

/** The answer that ends a block. */
export interface Answer {
  extensions?: Record<string, unknown> | null;
  answer?: string;
}

/** A note for the approval. */
export interface Approval {
  extensions?: Record<string, unknown> | null;
  note?: string;
}

/** Who may approve a completion, besides admins: keys, agents or roles; never the worker. */
export interface ApprovalGate {
  approvers?: string[];
  deadlineSeconds?: number | null;
  onDeadline?: "hold" | "reject";
}

/** An artifact of the current attempt; `sha256` is that of its bytes. */
export interface Artifact {
  id?: string;
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

/** The artifact that was added. */
export interface ArtifactAdded {
  id?: string;
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
  media_type?: string | null;
  name?: string | null;
  artifact_id: string;
}

/** The task that comes with a claim: only what never changes, so that a repeated claim gets the same reply. */
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
  correlationId?: string;
  parentTaskId?: string;
  referenceTaskIds?: string[];
  extensions?: Record<string, unknown> | null;
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

/** How callers must authenticate to an agent, from its card. */
export interface AuthRequirement {
  name: string;
  type?: string;
}

/** One completion of a batch. */
export interface BatchedCompletion {
  extensions?: Record<string, unknown> | null;
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

/** What blocks the work, and who or what could resolve it. */
export interface BlockReport {
  extensions?: Record<string, unknown> | null;
  reason: string;
  blockerType: "ambiguity" | "auth" | "dependency" | "resource" | "spec_gap" | "tool_failure" | "verification_fail";
  suggestedResolution?: string;
  dependsOn?: string[];
}

/** Why a task is blocked, as its holder reported. */
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

/** The fields of an agent that may be changed; absent fields stay. */
export interface BusAgentChange {
  name?: string | null;
  lead?: boolean | null;
  status?: string | null;
}

/** All agents of a session, each once. */
export interface BusAgentOrder {
  agent_ids: string[];
}

/** The state of a message for one agent. */
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

/** Whether a session receives the events of its workspace. */
export interface BusLedger {
  bound: boolean;
  workspace_id: string;
}

/** The inbox message that a recorded message became. */
export interface BusMail {
  message_id: string;
  to: string;
  event_id: string;
}

/** A message. `deliveries` is present when one message is read, `seq` when it waits for an agent. */
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

/** Which agent confirms a message. */
export interface BusMessageTaken {
  agent_id: string;
}

/** Whose inbox gets the message: an agent, a role or human. Without `to` it is the receiver on the bus. */
export interface BusRecording {
  to?: string | null;
  priority?: number;
  extensions?: Record<string, unknown> | null;
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

/** A signed head of the workspace's log: the number of records and their root. `note` is the signed text. `keys` are the log's verifier keys. Pass them to others by a way you trust: a key that comes with a receipt proves nothing. */
export interface Checkpoint {
  origin: string;
  size: number;
  root: string;
  note: string;
  keys: string[];
}

/** The result of an act on a claim. */
export interface ClaimChanged {
  status: "started" | "released" | "blocked" | "planned" | "completed" | "failed";
  taskId: string;
  claimId: string;
  eventId: string;
}

/** A claim that has ended; `next` is the outcome of the claim that was requested with it. */
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
  id?: string;
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

/** The next claim of a busy worker, requested together with the end of the current one. */
export interface ClaimNext {
  queueId: string;
  leaseSeconds?: number | null;
}

/** An agent's claim on the next tasks of a queue that it may claim. */
export interface ClaimNextRequest {
  extensions?: Record<string, unknown> | null;
  agentId: string;
  leaseSeconds?: number | null;
  count?: number | null;
  wait?: number;
  idempotencyKey?: string | null;
}

/** An agent's claim on a task. */
export interface ClaimRequest {
  extensions?: Record<string, unknown> | null;
  agentId: string;
  leaseSeconds?: number | null;
  withTask?: boolean;
  idempotencyKey?: string | null;
}

/** The result for one claim of a batch: it was completed, or there is a problem with it. */
export interface ClaimResult {
  claim?: ClaimEnded | null;
  problem?: Problem | null;
}

/** The result for each claim, in the order of the request. */
export interface ClaimResults {
  items: ClaimResult[];
}

/** The cost of the task so far, and what the caps of the workspace leave. Stop when a cap is reached. */
export interface ClaimSpending {
  taskId: string;
  claimId: string;
  costUsd: number;
  leftUsd: number | null;
  cap?: string;
  mayCall?: boolean;
  eventId?: string;
}

/** The task belongs to this agent until the lease expires. `task` is included on request, and always by claim-next; without it, `upstream` and `results` are the outputs of the tasks that this one depends on. */
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

/** A client that registers itself (RFC 7591); other fields are ignored. */
export interface ClientMetadata {
  redirect_uris: string[];
  client_name?: string;
  token_endpoint_auth_method?: string;
  grant_types?: string[];
  response_types?: string[];
}

/** The result of the work. Required outputs must have ready artifacts; the server checks that and names them beside those in `artifactIds`. Without `artifactIds` every ready artifact is named; more than four go into a manifest. `artifacts` are added with the completion. A required output without an artifact is taken from the field of the same name in `output`. */
export interface Completion {
  extensions?: Record<string, unknown> | null;
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

/** The states of the tasks of a context, with the field names of the seed's project fold. */
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

/** A new key; `apiKey` is shown only here. */
export interface CreatedKey {
  id?: string;
  keyId: string;
  apiKey: string;
  scopes: string[];
  agentId: string | null;
  eventId: string;
}

/** A new queue. */
export interface CreatedQueue {
  id?: string;
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

/** A new task and its state. */
export interface CreatedTask {
  id?: string;
  status: string;
  state?: string;
  taskId: string;
  queueId: string;
  eventId: string;
  warnings?: Advice[];
}

/** A new webhook. Its secret signs what it receives, and is shown only here. */
export interface CreatedWebhook {
  id?: string;
  webhookId: string;
  secret: string;
  eventId: string;
}

/** A new workspace and its first key (scope admin), which is shown only here. */
export interface CreatedWorkspace {
  id?: string;
  workspaceId: string;
  keyId: string;
  apiKey: string;
  eventId: string;
}

/** What may be spent. Before the first grant there is no limit and no balance. */
export interface Credits {
  granted: number;
  used: number;
  balance: number | null;
  unit: string;
  prices: Record<string, number>;
  ledgerFees: LedgerFees;
}

/** Credits for a workspace; without `workspaceId`, for the caller's own. */
export interface CreditsGrant {
  extensions?: Record<string, unknown> | null;
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
  media_type?: string | null;
  name?: string | null;
  data: unknown;
}

/** The agent is deactivated and claims nothing more; an event is written only if it was active. */
export interface DeactivatedAgent {
  agentId: string;
  eventId?: string;
  status: "deactivated";
}

/** A definition with its published plan and its draft. `plan` is the plan of the requested version, else the draft's, else the published one; `shownVersion` says which. */
export interface Definition {
  id?: string;
  status: "draft" | "published";
  state?: "draft" | "published";
  definitionId: string;
  name?: string;
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

/** A definition in a list. `version` is the last published one, `draftVersion` the draft's. */
export interface DefinitionSummary {
  id?: string;
  status: "draft" | "published";
  state?: "draft" | "published";
  definitionId: string;
  name?: string;
  version?: number | null;
  draftVersion?: number | null;
  erased?: boolean;
}

/** A draft; `validation` lists the errors that prevent its publication. */
export interface Draft {
  id?: string;
  status: "draft";
  state?: "draft";
  definitionId: string;
  version: number;
  name?: string;
  revision: number;
  validation: Validation;
  updatedAt: string;
}

/** A change of the draft's plan: a JSON merge patch (RFC 7396) of one revision. */
export interface DraftChange {
  plan: Record<string, unknown>;
  revision: number;
}

/** The plan of the draft. */
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

/** A session that was ended. */
export interface EndedSession {
  sessionId: string;
  status: "ended";
}

/** Where an agent can be reached, from its card. */
export interface Endpoint {
  url: string;
  binding?: string;
  protocolVersion?: string;
}

/** Erased content; its hash stays on the ledger. */
export interface ErasedContent {
  sha256: string;
  status: "erased";
  eventId: string;
}

/** What happened, to what, and at which place in the workspace's order; `data` is the payload of its wire. */
export interface Event {
  eventId: string;
  type: string;
  sequence: number;
  timestamp: string;
  actor: Party;
  subject: Party;
  id?: string;
  data: Record<string, unknown>;
  causationId?: string;
  correlationId?: string;
  extensions?: Record<string, unknown> | null;
}

/** Why a task is in its state, and what would change it. */
export interface Explanation {
  id?: string;
  taskId: string;
  state: string;
  running: boolean;
  reasons: Reason[];
}

/** The base of every recorded request: it may carry data of the caller, stored on its wire and returned. */
export interface Extended {
  extensions?: Record<string, unknown> | null;
}

/** How a task failed. */
export interface Failure {
  kind: string;
  reason?: string;
}

/** Why the task failed. */
export interface FailureReport {
  extensions?: Record<string, unknown> | null;
  reason: string;
  kind?: "error" | "rejected" | "timeout" | "verification";
  claimNext?: ClaimNext | null;
}

/** A file elsewhere, with the hash of its bytes if known. */
export interface FilePart {
  kind: "file_ref";
  media_type?: string | null;
  name?: string | null;
  uri: string;
  sha256?: string | null;
}

/** The first ids that begin with a prefix, in order. */
export interface FoundIds {
  items: string[];
  complete: boolean;
}

/** An approval that a completed task waits for, or the decision on it. */
export interface Gate {
  id?: string;
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

/** A closed gate; after a rejection, `retry` says whether another attempt follows. */
export interface GateDecided {
  id?: string;
  status: "approved" | "rejected";
  state?: "approved" | "rejected";
  gateId: string;
  taskId: string;
  workflowId?: string;
  retry?: boolean | null;
  eventId: string;
}

/** A run as nodes and edges. */
export interface Graph {
  id?: string;
  status: "running" | "paused" | "completed" | "failed" | "cancelled";
  state?: "running" | "paused" | "completed" | "failed" | "cancelled";
  workflowId: string;
  nodes: Node[];
  edges: Edge[];
}

/** The server is alive. */
export interface Health {
  status: "ok";
}

/** Whether the claim still holds its task, and until when. A stalled hold resumes with its holder's next act. For an ended claim, `state` is the state of the task if this claim was its last holder. */
export interface Heartbeat {
  state: "held" | "stalled" | "lease_lost" | "completed" | "failed" | "cancelled";
  leaseExpiresAt?: string | null;
  eventId?: string;
}

/** What a process that keeps a claim without a handler reports; a running handler counts as activity. */
export interface HolderActivity {
  extensions?: Record<string, unknown> | null;
  idleSeconds?: number;
}

/** The holder's plan for the work. */
export interface HolderPlan {
  extensions?: Record<string, unknown> | null;
  plan: Record<string, unknown> | unknown[];
}

/** An inbox message. */
export interface InboxMessage {
  id?: string;
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

/** A person with a one-time code, which is shown only here. `delivery` says whether the server mails it; if not, send it yourself. */
export interface InvitedPerson {
  id?: string;
  personId: string;
  loginCode: string;
  expiresAt: string;
  delivery: "by_mail" | "by_hand";
  eventId?: string;
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

/** Stored content: its hash and its size. */
export interface KeptContent {
  sha256: string;
  bytes: number;
}

/** A key in a list: its prefix, never its secret. */
export interface Key {
  id?: string;
  keyId: string;
  prefix: string;
  scopes: string[];
  name: string | null;
  agentId: string | null;
  createdAt: string;
  revokedAt: string | null;
}

/** What a public network charged for the workspace's messages; a local ledger costs nothing. `reserved` is for messages on their way. Only operators see `tinybars`, the amount in the network's own currency. */
export interface LedgerFees {
  currency: string;
  amount: number;
  credits?: number;
  reserved?: number;
  messages?: number;
  tinybars?: number | null;
}

/** A code that can be used once; `url` is the page that takes it. */
export interface LoginCode {
  secret: string;
  url: string;
  expiresAt: string;
}

/** A code, and the scopes of the token, separated by spaces; without any, all scopes of the key. */
export interface LoginCodeExchange {
  code: string;
  scope?: string;
}

/** A login of a person from one client. */
export interface LoginSession {
  id?: string;
  sessionId: string;
  clientName: string;
  scopes: string[];
  createdAt: string;
  usedAt: string;
}

/** An access token for a browser. */
export interface LoginToken {
  accessToken: string;
  scopes: string[];
  expiresAt: string;
}

/** The message that was added. */
export interface MessageAdded {
  id?: string;
  messageId: string;
  taskId: string;
  eventId: string;
}

/** The message is read; an event is written only if it was unread. */
export interface MessageRead {
  messageId: string;
  eventId?: string;
  status: "read";
}

/** Another claim won. Do not retry the same task at once; claim the next one. */
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

/** Usage of one model; without `model`, of an unknown one. */
export interface ModelUsage {
  model?: string;
  costUsd?: number;
  inputTokens?: number;
  outputTokens?: number;
}

/** A durable output, in one of three ways: inline content, the hash of uploaded content, or a URI with a hash. */
export interface NewArtifact {
  extensions?: Record<string, unknown> | null;
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
  supersedes?: string | null;
}

/** The fields of a new agent. */
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

/** The fields of a new session. */
export interface NewBusSession {
  id?: string | null;
  name?: string | null;
  policy?: "guarded" | "open";
  reuse?: boolean;
}

/** A reviewer's concern about work in progress. */
export interface NewConcern {
  extensions?: Record<string, unknown> | null;
  concern: string;
  severity?: "blocking" | "info" | "major" | "minor";
}

/** The plan of a new definition; a draft may still have errors. */
export interface NewDefinition {
  plan: Record<string, unknown>;
}

/** The payload of seed 000's inbox wire. `to` is an agent (id or slug), a role, or human; `toAgent` is an alias. */
export interface NewInboxMessage {
  extensions?: Record<string, unknown> | null;
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

/** A key to create. A key with the scope agent is bound to one agent and acts only as that agent. */
export interface NewKey {
  extensions?: Record<string, unknown> | null;
  scopes: Array<"admin" | "agent" | "operator" | "produce" | "read" | "runner">;
  name?: string | null;
  agentId?: string | null;
}

/** A message about a task, as in `message.schema.json`. The server sets its id, and its role by the key; a role in the request must be the same. */
export interface NewMessage {
  extensions?: Record<string, unknown> | null;
  message_id?: string | null;
  role?: "agent" | "human" | "system" | null;
  parts: Array<TextPart | ArtifactPart | DataPart | FilePart>;
  metadata?: Record<string, string | number | boolean | null> | null;
}

/** A person to invite. */
export interface NewPerson {
  email: string;
  scopes?: Array<"admin" | "operator" | "produce" | "read" | "runner">;
  name?: string | null;
}

/** What requests cost, by event type; a type that is not listed costs one credit. */
export interface NewPrices {
  extensions?: Record<string, unknown> | null;
  prices: Record<string, number>;
  workspaceId?: string | null;
}

/** Progress of the work: a sentence, a percentage, or both. */
export interface NewProgress {
  extensions?: Record<string, unknown> | null;
  text?: string;
  percent?: number | null;
}

/** A project or a phase; without an id, the id is derived from its name. */
export interface NewProject {
  extensions?: Record<string, unknown> | null;
  id?: string | null;
  name: string;
  description?: string;
}

/** A queue; without an id, the id is derived from its name. */
export interface NewQueue {
  extensions?: Record<string, unknown> | null;
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

/** A role; without an id, the id is derived from its name. */
export interface NewRole {
  extensions?: Record<string, unknown> | null;
  id?: string;
  name: string;
  description?: string;
  capabilities?: string[];
}

/** The rules for later records. */
export interface NewRules {
  extensions?: Record<string, unknown> | null;
  rules: number;
}

/** A workspace to create. The request contains nothing about the person, so it reveals nothing about others. */
export interface NewSignup {
  name?: string | null;
}

/** A simple task. Any active agent with its required roles and capabilities may claim it. */
export interface NewTask {
  extensions?: Record<string, unknown> | null;
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
  correlationId?: string;
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

/** Usage since the last report; an empty report asks what the caps leave. With `reserve_usd` it also asks whether a model call of that cost may begin. The next report under the claim, or the end of the claim, frees what was reserved. */
export interface NewUsage {
  extensions?: Record<string, unknown> | null;
  usage: ModelUsage[];
  reserveUsd?: number | null;
}

/** The plan of the next draft; without one, the plan of the last version. */
export interface NewVersion {
  plan?: Record<string, unknown> | null;
}

/** Where to send events, and which types; without types, all events. */
export interface NewWebhook {
  extensions?: Record<string, unknown> | null;
  receiverUrl: string;
  types?: string[];
  description?: string | null;
}

/** A plan to run on a queue, or a published definition and its version (default: the last). `input` is the input of this run: all its tasks see it. */
export interface NewWorkflow {
  extensions?: Record<string, unknown> | null;
  queueId: string;
  plan?: Record<string, unknown> | null;
  definitionId?: string | null;
  version?: number | null;
  input?: Record<string, unknown> | null;
  phaseId?: string | null;
}

/** A workspace to create. */
export interface NewWorkspace {
  extensions?: Record<string, unknown> | null;
  name?: string | null;
  order?: "local" | "network";
}

/** The next step: one action, and its subject. */
export interface NextStep {
  action: string;
  queueId?: string;
  roleId?: string;
  agentId?: string;
  taskId?: string;
  detail?: string;
}

/** The queue has nothing that this agent may claim now. */
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
  authorization_endpoint: string;
  token_endpoint: string;
  registration_endpoint: string;
  revocation_endpoint: string;
  jwks_uri: string;
  scopes_supported: string[];
  response_types_supported: string[];
  grant_types_supported: string[];
  token_endpoint_auth_methods_supported: string[];
  code_challenge_methods_supported: string[];
  authorization_response_iss_parameter_supported: boolean;
  service_documentation: string;
}

/** Who acted, or what was acted on. */
export interface Party {
  type: string;
  id: string;
}

/** A person in a list. */
export interface Person {
  id?: string;
  personId: string;
  email: string | null;
  name: string | null;
  scopes: string[];
  createdAt: string;
  revokedAt: string | null;
  lastLoginAt: string | null;
  sessions?: LoginSession[];
}

/** A phase of a project, and its runs that have not ended. */
export interface Phase {
  id: string;
  status: "active" | "on_hold" | "completed";
  state?: "active" | "on_hold" | "completed";
  phaseId: string;
  projectId: string;
  name?: string;
  description?: string;
  liveWorkflows: string[];
  createdAt: string;
  completedAt?: string | null;
  erased?: boolean;
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

/** The result of a simulation. `bottleneck` is the role whose tasks waited longest; `left` are tasks never done. */
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

/** A plan, and the assumptions of its simulation. */
export interface PlanSimulation {
  plan: Record<string, unknown>;
  agents?: Record<string, number>;
  seconds?: Record<string, number>;
  eachSeconds?: number;
  gateSeconds?: number;
}

/** Settings of a workspace, stored on its ledger. `blockRoutes`: blocker type -> the roles that get a message. `costCaps`: dollars that may be spent on one task, run (`workflow`) or agent, or in one day (UTC) by all. `unverifiedOutputs`: whether a task may complete with required outputs whose bytes RedKey has not seen. */
export interface Policy {
  id?: string;
  workspaceId: string;
  rules: number;
  blockRoutes: Record<string, string[]>;
  costCaps: Record<string, number>;
  selfApproval: boolean;
  receipts: ReceiptPolicy;
  unverifiedOutputs: string;
  retry: RetryPolicyReply;
}

/** What was changed; nothing is recorded if nothing changed. */
export interface PolicyChange {
  workspaceId: string;
  blockRoutes: Record<string, string[]>;
  costCaps: Record<string, number | null>;
  selfApproval?: boolean | null;
  receipts?: ReceiptPolicy | null;
  eventId: string | null;
  unverifiedOutputs?: string | null;
  retry?: RetryPolicyReply | null;
}

/** Policies to set; those that are not named stay. A cap that is null is removed. */
export interface PolicyPatch {
  extensions?: Record<string, unknown> | null;
  blockRoutes?: Record<string, string[]>;
  costCaps?: Record<string, number | null>;
  selfApproval?: boolean | null;
  receipts?: ReceiptPolicyPatch | null;
  unverifiedOutputs?: "allow" | "refuse" | null;
  retry?: RetryPolicyPatch | null;
}

/** The prices that apply from this event on. */
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

/** The last progress report of the holder. */
export interface Progress {
  text?: string;
  percent?: number | null;
  at: string;
  erased?: boolean;
}

/** Whether the report was recorded: a claim gets at most one record per second. Views show the last report. */
export interface ProgressReported {
  taskId: string;
  claimId: string;
  recorded: boolean;
  reason?: string;
  retryAfterSeconds?: number | null;
  eventId?: string;
}

/** A project and its phases. */
export interface Project {
  id: string;
  status: "active" | "on_hold" | "completed";
  state?: "active" | "on_hold" | "completed";
  projectId: string;
  name?: string;
  description?: string;
  phases: Phase[];
  createdAt: string;
  completedAt?: string | null;
  erased?: boolean;
}

/** The current state of a project or phase. */
export interface ProjectChanged {
  id: string;
  status: "active" | "on_hold" | "completed";
  state?: "active" | "on_hold" | "completed";
  projectId: string;
  phaseId?: string;
  eventId: string;
}

/** What to change; fields that are not named stay. `status` is an earlier name of `state`. */
export interface ProjectPatch {
  extensions?: Record<string, unknown> | null;
  name?: string | null;
  description?: string | null;
  state?: "active" | "on_hold" | null;
  status?: "active" | "on_hold" | null;
}

/** Where a client gets tokens for this server (RFC 9728). */
export interface ProtectedResource {
  resource: string;
  authorization_servers: string[];
  scopes_supported: string[];
  bearer_methods_supported: string[];
  resource_documentation: string;
}

/** A version that can be run and never changes. */
export interface Published {
  id?: string;
  status: "published";
  state?: "published";
  definitionId: string;
  version: number;
  eventId: string;
  validation: Validation;
}

/** The plan of the last published version; null when its text was erased. */
export interface PublishedPlan {
  version: number;
  plan: Record<string, unknown> | null;
}

/** A queue with its settings. */
export interface Queue {
  id?: string;
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

/** How many tasks a queue has. */
export interface QueueCounts {
  id?: string;
  queueId: string;
  tasks: Record<string, number>;
}

/** What to change about a queue. */
export interface QueuePatch {
  extensions?: Record<string, unknown> | null;
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

/** The server accepts requests, and its store can be read and written. */
export interface Readiness {
  store: string;
  status: "ready";
  version?: string;
  time?: string;
}

/** One thing that keeps a task from running. */
export interface Reason {
  code: string;
  message: string;
  next: NextStep;
}

/** The receipt of an event; `offline` contains what is needed to verify it without the server. */
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

/** What the record did: inclusion proves that the record exists, not that it changed anything. */
export interface ReceiptEffect {
  status: "applied" | "void";
  reason?: string | null;
}

/** Details of the ledger that most users do not need. */
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

/** Where a public network orders the workspace: its topic, and the message there that the record is. A record without a `sequence` follows from others. The messages up to `until` are what it takes to compute it. */
export interface ReceiptOrder {
  network: string;
  topic: string;
  sequence?: number | null;
  until: number;
}

/** `public`: anyone with the link may open a receipt. */
export interface ReceiptPolicy {
  public: boolean;
}

/** Whether anyone with the link may open a receipt. */
export interface ReceiptPolicyPatch {
  public: boolean;
}

/** Everything that a verifier needs, except the keys. `proof` is a C2SP tlog-proof, `content` bodies in base64, `anchor` mirror rows; `attestation` has the key id and signature of each signer of the document, who sign under the checkpoint's origin. */
export interface ReceiptProof {
  wire: string;
  internal: ReceiptInternal;
  proof: string;
  signers?: SignerTerm[];
  content?: string[];
  anchor?: Array<Record<string, unknown>>;
  order?: ReceiptOrder | null;
  attestation?: string[];
}

/** The state of the proof: `pending` until a checkpoint covers the record. */
export interface ReceiptVerification {
  status: "verified" | "pending";
  provider: string;
  receiptUrl: string;
}

/** The agent as it was registered, or as it is now if its card was registered before; `apiKey` is shown only here. */
export interface RegisteredAgent {
  id?: string;
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

/** A client that may ask people to log in. Its id contains all of this; the server stores nothing. */
export interface RegisteredClient {
  client_id: string;
  client_name: string;
  redirect_uris: string[];
  token_endpoint_auth_method: string;
  grant_types: string[];
  response_types: string[];
}

/** The agent may not claim this. A rejected claim-next names no task and writes no event; the same holds for a claim on a task that the agent has completed itself (`completed_by_you`; `detail` is its claim). */
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
  extensions?: Record<string, unknown> | null;
  note: string;
}

/** A person who can no longer log in. */
export interface RemovedPerson {
  personId: string;
  status: "removed";
  eventId: string;
}

/** A removed role, and the agents that had it. */
export interface RemovedRole {
  id: string;
  status: "removed";
  agents: string[];
  eventId: string;
}

/** How often a task is tried, what follows a failure (another attempt, the end, or waiting for a person), and the pause before another attempt. Fields without a value follow the queue or the workspace. */
export interface Retry {
  maxAttempts?: number | null;
  onFailure?: "block" | "fail" | "reopen";
  delaySeconds?: number | null;
  backoff?: number;
  jitter?: number;
  longestDelaySeconds?: number;
}

/** Retries of tasks without their own retry settings: how often, and the pause before another attempt. */
export interface RetryPolicyPatch {
  maxAttempts: number;
  delaySeconds?: number;
  backoff?: number;
  jitter?: number;
  longestDelaySeconds?: number;
}

/** How tasks without their own retry settings are retried. */
export interface RetryPolicyReply {
  maxAttempts: number;
  delaySeconds: number;
  backoff: number;
  jitter: number;
  longestDelaySeconds: number;
}

/** The form: a refresh or access token of a person; its session ends. */
export interface RevocationRequest {
  token: string;
  token_type_hint?: string | null;
  client_id?: string | null;
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
  roleId: string;
  name?: string;
  description?: string;
  capabilities: string[];
  agents: string[];
  createdAt: string | null;
  erased?: boolean;
}

/** How busy the agents of a role are, and how long tasks wait for them. */
export interface RoleForecast {
  agents: number;
  tasks: number;
  busySeconds: number;
  utilisation: number;
  waitedSeconds: number;
  longestWaitSeconds: number;
  mostWaiting: number;
}

/** Whether an agent has a role now; an event is written only if that changed. */
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

/** What to change about a role; fields that are not named stay. */
export interface RolePatch {
  extensions?: Record<string, unknown> | null;
  name?: string | null;
  description?: string | null;
  capabilities?: string[] | null;
}

/** One message that was sent. */
export interface SentMessage {
  id?: string;
  messageId: string;
  to: string;
  eventId: string;
}

/** The messages that were sent; a message to a role is sent to each active agent that has it. */
export interface SentMessages {
  messageId: string;
  eventId: string;
  messages: SentMessage[];
}

/** A new workspace with its admin key, which is shown only here, and its credits. */
export interface SignedUp {
  id?: string;
  workspaceId: string;
  keyId: string;
  apiKey: string;
  credits: number;
  eventId: string;
}

/** A signer of this log: added at a sequence, and possibly retired at a later one. */
export interface SignerTerm {
  key: string;
  added: number;
  retired?: number | null;
}

/** A skill of an agent, from its card. */
export interface Skill {
  id: string;
  name?: string;
  description?: string;
  tags?: string[];
}

/** A run with the tasks that are available at its start, by their ids in the plan. */
export interface StartedWorkflow {
  id?: string;
  status: "running";
  state?: "running";
  workflowId: string;
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

/** A task in full: its request, its state and its result. */
export interface Task {
  id?: string;
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
  correlationId?: string;
  parentTaskId?: string;
  referenceTaskIds?: string[];
  extensions?: Record<string, unknown> | null;
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
  opensAt?: string | null;
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

/** The task's state after the change. */
export interface TaskChanged {
  id?: string;
  status: string;
  state?: string;
  taskId: string;
  attempt: number;
  eventId: string;
}

/** Who holds a task, and until when. */
export interface TaskHold {
  claimId: string;
  agentId: string;
  claimedAt: string | null;
  startedAt?: string | null;
  leaseExpiresAt: string | null;
}

/** One message about a task. */
export interface TaskMessage {
  id?: string;
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

/** The result for one task of a batch: it was created, or there is a problem with it. */
export interface TaskResult {
  task?: CreatedTask | null;
  problem?: Problem | null;
}

/** The result for each task, in the order of the request. */
export interface TaskResults {
  items: TaskResult[];
}

/** A task in a list. */
export interface TaskSummary {
  id?: string;
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

/** Text. */
export interface TextPart {
  kind: "text";
  media_type?: string | null;
  name?: string | null;
  text: string;
}

/** The form. Client id and secret are in the form or in HTTP Basic, not in both; `scope` asks for fewer scopes. A token may have every scope that its key includes: admin includes produce, runner and read; produce, runner and agent each include read. */
export interface TokenRequest {
  grant_type: "authorization_code" | "client_credentials" | "refresh_token";
  scope?: string | null;
  client_id?: string | null;
  client_secret?: string | null;
  code?: string | null;
  redirect_uri?: string | null;
  code_verifier?: string | null;
  refresh_token?: string | null;
  resource?: string | null;
}

/** The token is no longer valid, if it ever was. */
export interface TokenRevoked {
  status: "revoked";
}

/** The role after the change. */
export interface UpdatedRole {
  id: string;
  roleId: string;
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
  id?: string;
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

/** The result of a task that this one depends on. */
export interface UpstreamResult {
  taskId: string;
  planTaskId?: string;
  output?: unknown;
  summary?: string;
}

/** What was counted: recorded events, outcomes of claims, bytes on the ledger, credits, and model costs. */
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

/** The figures of one day, type, agent, model or task; the one that `by` selects is set. */
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
  ledgerFees?: LedgerFees | null;
}

/** Whether a plan can run; errors prevent it, warnings are advice. */
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

/** A webhook or A2A push notification config, and the state of its deliveries. */
export interface Webhook {
  id?: string;
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

/** The webhook's state after the change. */
export interface WebhookChanged {
  webhookId: string;
  status: "removed" | "resumed";
  eventId?: string;
}

/** A run in a list. */
export interface Workflow {
  id?: string;
  status: "running" | "paused" | "completed" | "failed" | "cancelled";
  state?: "running" | "paused" | "completed" | "failed" | "cancelled";
  workflowId: string;
  name?: string;
  description?: string;
  queueId: string;
  definitionId?: string;
  version?: number | null;
  phaseId?: string;
  projectId?: string;
  counts: Counts;
  startedAt: string;
  endedAt?: string | null;
  erased?: boolean;
}

/** The state of the run; an event is written only if it changed. */
export interface WorkflowChanged {
  id?: string;
  status: "running" | "paused" | "cancelled";
  state?: "running" | "paused" | "cancelled";
  workflowId: string;
  eventId?: string;
}

/** A run in full. */
export interface WorkflowState {
  id?: string;
  status: "running" | "paused" | "completed" | "failed" | "cancelled";
  state?: "running" | "paused" | "completed" | "failed" | "cancelled";
  workflowId: string;
  name?: string;
  description?: string;
  queueId: string;
  definitionId?: string;
  version?: number | null;
  phaseId?: string;
  projectId?: string;
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
  id?: string;
  workspaceId: string;
  name: string | null;
  createdAt: string;
}

/** One error of a request: where (a JSON pointer into the body, or a parameter's name) and what. */
export interface Wrong {
  code: string;
  pointer: string;
  message: string;
}
