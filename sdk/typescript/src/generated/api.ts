// Written by `python -m tools.typescript` from the OpenAPI document; `make verify` proves it current.
import type { CallOptions, Pages } from "../calls.js";
import type * as T from "./types.js";

/** Every operation of the API, by the names of the Python SDK. */
export interface Api {
  agents: {
    /** Register an agent by its Agent Card: A2A of either format, or RedKey's own. */
    register(body?: T.AgentRegistration, options?: CallOptions): Promise<T.RegisteredAgent>;
    /** List agents. */
    list(query?: { limit?: number; after?: string; slug?: string | null; role?: string | null; active?: boolean | null }, options?: CallOptions): Pages<T.Agent>;
    /** Show an agent with its card. */
    get(agentId: string, options?: CallOptions): Promise<T.Agent>;
    /** Change an agent. */
    update(agentId: string, body?: T.AgentPatch, options?: CallOptions): Promise<T.Agent>;
    /** Report that an agent is alive, and how much work it can take. */
    heartbeat(agentId: string, body?: T.AgentBeat, options?: CallOptions): Promise<T.AgentHeard>;
    /** Deactivate an agent. */
    deactivate(agentId: string, body?: T.Extended, options?: CallOptions): Promise<T.DeactivatedAgent>;
    /** List the outcomes of an agent's claims, newest first. */
    claimHistory(agentId: string, query?: { limit?: number; after?: string }, options?: CallOptions): Pages<T.ClaimHistoryItem>;
    /** List what an agent did and what happened to it, such as missed claims; live with text/event-stream. */
    events(agentId: string, query?: { limit?: number; after?: string; type?: string; order?: "asc" | "desc" }, options?: CallOptions): Pages<T.Event>;
    /** List messages to an agent, by priority, then by age. */
    inbox(agentId: string, query?: { limit?: number; after?: string; unread?: boolean }, options?: CallOptions): Pages<T.InboxMessage>;
    /** List what an agent did and what happened to it, such as missed claims; live with text/event-stream. */
    follow(agentId: string, query?: { after?: string; type?: string | readonly string[] }, options?: CallOptions): AsyncGenerator<T.Event, void, undefined>;
  };
  billing: {
    /** Show what the workspace may spend. */
    credits(options?: CallOptions): Promise<T.Credits>;
    /** Grant credits to a workspace. */
    grant(body: T.CreditsGrant, options?: CallOptions): Promise<T.CreditsGranted>;
    /** Set what requests cost in a workspace, from now on. */
    setPrices(body: T.NewPrices, options?: CallOptions): Promise<T.PricesSet>;
  };
  checkpoints: {
    /** The newest signed head of the workspace's log; with Accept: text/plain, the signed note itself. */
    latest(options?: CallOptions): Promise<T.Checkpoint>;
  };
  claims: {
    /** Complete up to 500 claims, each with its own result. */
    completeMany(body: T.Completions, options?: CallOptions): Promise<T.ClaimResults>;
    /** Report that the work has started. */
    start(claimId: string, body?: T.Extended, options?: CallOptions): Promise<T.ClaimChanged>;
    /** Release a task. */
    release(claimId: string, body?: T.Extended, options?: CallOptions): Promise<T.ClaimChanged>;
    /** Extend the lease, and learn whether the claim still holds. */
    heartbeat(claimId: string, body?: T.HolderActivity, options?: CallOptions): Promise<T.Heartbeat>;
    /** Report that the work is blocked. Those who can resolve it get a message. */
    block(claimId: string, body: T.BlockReport, options?: CallOptions): Promise<T.ClaimChanged>;
    /** Add an artifact: inline, as uploaded content, or elsewhere by URI and hash. */
    addArtifact(claimId: string, body: T.NewArtifact, options?: CallOptions): Promise<T.ArtifactAdded>;
    /** Record the holder's plan for the work. */
    plan(claimId: string, body: T.HolderPlan, options?: CallOptions): Promise<T.ClaimChanged>;
    /** Report what model calls cost, and learn what the caps leave. */
    reportUsage(claimId: string, body: T.NewUsage, options?: CallOptions): Promise<T.ClaimSpending>;
    /** Report progress. */
    reportProgress(claimId: string, body?: T.NewProgress, options?: CallOptions): Promise<T.ProgressReported>;
    /** Complete a task; with claimNext the next claim comes in the same reply. */
    complete(claimId: string, body?: T.Completion, options?: CallOptions): Promise<T.ClaimEnded>;
    /** Report that a task failed. */
    fail(claimId: string, body: T.FailureReport, options?: CallOptions): Promise<T.ClaimEnded>;
    /** List what happened to a claim. */
    events(claimId: string, query?: { limit?: number; after?: string; type?: string; order?: "asc" | "desc" }, options?: CallOptions): Pages<T.Event>;
  };
  content: {
    /** Get a body. */
    get(sha256: string, options?: CallOptions): Promise<Uint8Array<ArrayBuffer>>;
    /** Erase a body. Its hash stays on the ledger, its bytes are gone. */
    erase(sha256: string, options?: CallOptions): Promise<T.ErasedContent>;
    /** Store a body of up to 1 GiB under its SHA-256. */
    put(data: Uint8Array<ArrayBuffer> | string | Blob, query?: { sha256?: string | null }, options?: CallOptions): Promise<T.KeptContent>;
  };
  definitions: {
    /** Check a plan without saving or starting it; always 200. */
    validate(body: T.PlanBody, options?: CallOptions): Promise<T.Validation>;
    /** Simulate a plan; nothing is recorded. */
    simulate(body: T.PlanSimulation, options?: CallOptions): Promise<T.PlanForecast>;
    /** Save a plan as the draft of a new definition. */
    create(body: T.NewDefinition, options?: CallOptions): Promise<T.Draft>;
    /** List the definitions of the workspace. */
    list(query?: { limit?: number; after?: string; state?: "draft" | "published" | null }, options?: CallOptions): Pages<T.DefinitionSummary>;
    /** Show a definition with its versions and a plan. */
    get(definitionId: string, query?: { version?: number | null }, options?: CallOptions): Promise<T.Definition>;
    /** Change the draft by a JSON merge patch. */
    update(definitionId: string, body: T.DraftChange, options?: CallOptions): Promise<T.Draft>;
    /** Create the draft of the next version. */
    createVersion(definitionId: string, body?: T.NewVersion, options?: CallOptions): Promise<T.Draft>;
    /** Publish the draft. */
    publish(definitionId: string, body?: T.Extended, options?: CallOptions): Promise<T.Published>;
  };
  events: {
    /** Show an event. */
    get(eventId: string, options?: CallOptions): Promise<T.Event>;
    /** Follow the workspace's events as server-sent events. */
    follow(query?: { type?: string | readonly string[]; types?: string | readonly string[]; agentId?: string; workflowId?: string; queueId?: string; after?: number | null }, options?: CallOptions): AsyncGenerator<T.Event, void, undefined>;
  };
  gates: {
    /** List gates: approvals that tasks wait for. */
    list(query?: { limit?: number; after?: string; state?: "closed" | "open" }, options?: CallOptions): Pages<T.Gate>;
    /** Show a gate. */
    get(gateId: string, options?: CallOptions): Promise<T.Gate>;
    /** Approve a completed task. */
    approve(gateId: string, body?: T.Approval, options?: CallOptions): Promise<T.GateDecided>;
    /** Reject a completed task. */
    reject(gateId: string, body: T.Rejection, options?: CallOptions): Promise<T.GateDecided>;
  };
  inbox: {
    /** Send a message to an agent, to a role or to the humans. */
    send(body: T.NewInboxMessage, options?: CallOptions): Promise<T.SentMessages>;
    /** List messages to the humans or to an agent, by priority, then by age. */
    list(query?: { limit?: number; after?: string; to?: string | null; unread?: boolean }, options?: CallOptions): Pages<T.InboxMessage>;
    /** Mark a message as read. */
    read(messageId: string, body?: T.Extended, options?: CallOptions): Promise<T.MessageRead>;
  };
  keys: {
    /** Create an API key; its secret is shown once. */
    create(workspaceId: string, body: T.NewKey, options?: CallOptions): Promise<T.CreatedKey>;
    /** List the keys of a workspace, by prefix. */
    list(workspaceId: string, query?: { limit?: number; after?: string }, options?: CallOptions): Pages<T.Key>;
    /** Revoke a key. */
    revoke(workspaceId: string, keyId: string, options?: CallOptions): Promise<T.RevokedKey>;
  };
  ledger: {
    /** Query the ledger of the workspace. */
    query(query?: { limit?: number; after?: string; type?: string; order?: "asc" | "desc"; agentId?: string; taskId?: string; claimId?: string; workflowId?: string; queueId?: string; from?: string; to?: string }, options?: CallOptions): Pages<T.Event>;
  };
  logins: {
    /** Create a link that opens the Studio. */
    create(options?: CallOptions): Promise<T.LoginCode>;
    /** Exchange a login code for a token. */
    exchange(body: T.LoginCodeExchange, options?: CallOptions): Promise<T.LoginToken>;
  };
  oauth: {
    /** What the authorization server can do (RFC 8414). */
    metadata(options?: CallOptions): Promise<T.OAuthMetadata>;
    /** The keys that sign access tokens. */
    keySet(options?: CallOptions): Promise<T.JsonWebKeySet>;
    /** Where clients get tokens for this server (RFC 9728). */
    resource(options?: CallOptions): Promise<T.ProtectedResource>;
    /** Where MCP clients get tokens for /mcp (RFC 9728). */
    mcpResource(options?: CallOptions): Promise<T.ProtectedResource>;
    /** Exchange a key, an authorization code or a refresh token for a short-lived access token. */
    token(body?: { scope?: string | null; client_id?: string | null; client_secret?: string | null; code?: string | null; redirect_uri?: string | null; code_verifier?: string | null; refresh_token?: string | null; resource?: string | null }, options?: CallOptions): Promise<T.AccessToken>;
    /** Register a client that asks people to log in (RFC 7591). */
    register(body: T.ClientMetadata, options?: CallOptions): Promise<T.RegisteredClient>;
    /** End the session that a token of a person belongs to (RFC 7009). */
    revoke(body: T.RevocationRequest, options?: CallOptions): Promise<T.TokenRevoked>;
  };
  people: {
    /** Invite a person by e-mail address; the one-time code is shown once. */
    invite(workspaceId: string, body: T.NewPerson, options?: CallOptions): Promise<T.InvitedPerson>;
    /** List the people of a workspace with their sessions. */
    list(workspaceId: string, query?: { limit?: number; after?: string }, options?: CallOptions): Pages<T.Person>;
    /** Create a new one-time code for a person; the previous one becomes invalid. */
    code(workspaceId: string, personId: string, options?: CallOptions): Promise<T.InvitedPerson>;
    /** End one session of a person; its tokens end at once. */
    endSession(workspaceId: string, personId: string, sessionId: string, options?: CallOptions): Promise<T.EndedSession>;
    /** Remove a person; all sessions end at once. */
    remove(workspaceId: string, personId: string, options?: CallOptions): Promise<T.RemovedPerson>;
  };
  phases: {
    /** Create a phase of a project. */
    create(projectId: string, body: T.NewProject, options?: CallOptions): Promise<T.ProjectChanged>;
    /** Show a phase with its live runs. */
    get(phaseId: string, options?: CallOptions): Promise<T.Phase>;
    /** Change a phase: its name, its description, its state. */
    update(phaseId: string, body?: T.ProjectPatch, options?: CallOptions): Promise<T.ProjectChanged>;
    /** Complete a phase. */
    complete(phaseId: string, body?: T.Extended, options?: CallOptions): Promise<T.ProjectChanged>;
    /** List what happened to a phase, including the start of its runs. */
    events(phaseId: string, query?: { limit?: number; after?: string; type?: string; order?: "asc" | "desc" }, options?: CallOptions): Pages<T.Event>;
  };
  projects: {
    /** Create a project. */
    create(body: T.NewProject, options?: CallOptions): Promise<T.ProjectChanged>;
    /** List projects. */
    list(query?: { limit?: number; after?: string; state?: "active" | "completed" | "on_hold" | null }, options?: CallOptions): Pages<T.Project>;
    /** Show a project with its phases. */
    get(projectId: string, options?: CallOptions): Promise<T.Project>;
    /** Change a project: its name, its description, its state. */
    update(projectId: string, body?: T.ProjectPatch, options?: CallOptions): Promise<T.ProjectChanged>;
    /** Complete a project. */
    complete(projectId: string, body?: T.Extended, options?: CallOptions): Promise<T.ProjectChanged>;
    /** List what happened to a project, to its phases and to the tasks of its context. */
    events(projectId: string, query?: { limit?: number; after?: string; type?: string; order?: "asc" | "desc" }, options?: CallOptions): Pages<T.Event>;
  };
  queues: {
    /** Claim the next task of a queue, now or as soon as there is one. */
    claimNext(queueId: string, body: T.ClaimNextRequest, options?: CallOptions): Promise<T.Claimed | T.Missed | T.Rejected | T.NoTasks>;
    /** Create a queue. */
    create(body: T.NewQueue, options?: CallOptions): Promise<T.CreatedQueue>;
    /** List queues. */
    list(query?: { limit?: number; after?: string }, options?: CallOptions): Pages<T.Queue>;
    /** Show a queue with its settings. */
    get(queueId: string, options?: CallOptions): Promise<T.Queue>;
    /** Change a queue's settings and limits. */
    update(queueId: string, body?: T.QueuePatch, options?: CallOptions): Promise<T.Queue>;
    /** How many tasks of a queue are in which state. */
    counts(queueId: string, options?: CallOptions): Promise<T.QueueCounts>;
  };
  receipts: {
    /** The receipt of an event; with format=proof it can be verified without this server. */
    get(eventId: string, query?: { content?: boolean }, options?: CallOptions): Promise<T.Receipt>;
    /** The receipt of an event; with format=proof it can be verified without this server. */
    summary(eventId: string, query?: { format?: "proof" | "receipt" | "tlog-proof"; content?: boolean }, options?: CallOptions): Promise<T.Receipt>;
    /** The receipt of an event; with format=proof it can be verified without this server. */
    tlogProof(eventId: string, query?: { content?: boolean }, options?: CallOptions): Promise<string>;
    /** Show a receipt: a page for people, the whole receipt for programs. */
    page(eventId: string, options?: CallOptions): Promise<string>;
  };
  roles: {
    /** Create a role. */
    create(body: T.NewRole, options?: CallOptions): Promise<T.CreatedRole>;
    /** List roles. */
    list(query?: { limit?: number; after?: string }, options?: CallOptions): Pages<T.Role>;
    /** Show a role with the agents that have it. */
    get(roleId: string, options?: CallOptions): Promise<T.Role>;
    /** Change a role: its name, its description, its capabilities. */
    update(roleId: string, body?: T.RolePatch, options?: CallOptions): Promise<T.UpdatedRole>;
    /** Remove a role. */
    remove(roleId: string, options?: CallOptions): Promise<T.RemovedRole>;
    /** Grant a role to an agent. */
    grant(roleId: string, agentId: string, body?: T.Extended, options?: CallOptions): Promise<T.RoleGrant>;
    /** Take a role from an agent. */
    revoke(roleId: string, agentId: string, options?: CallOptions): Promise<T.RoleGrant>;
  };
  server: {
    /** The process is alive. */
    health(options?: CallOptions): Promise<T.Health>;
    /** The server can serve requests. */
    ready(options?: CallOptions): Promise<T.Readiness>;
    /** This API as OpenAPI 3.1. */
    openapi(options?: CallOptions): Promise<Record<string, unknown>>;
    /** This API as a web page. */
    docs(options?: CallOptions): Promise<string>;
    /** Find ids that begin with a prefix. */
    findIds(prefix: string, options?: CallOptions): Promise<T.FoundIds>;
    /** Metrics for Prometheus. */
    metrics(options?: CallOptions): Promise<string>;
  };
  signup: {
    /** Create a workspace of your own, with an admin key and starting credits. */
    create(body?: T.NewSignup, options?: CallOptions): Promise<T.SignedUp>;
  };
  tasks: {
    /** Claim a task: exactly one agent wins, and every other learns who. */
    claim(taskId: string, body: T.ClaimRequest, options?: CallOptions): Promise<T.Claimed | T.Missed | T.Rejected>;
    /** List what happened to a task, including the attempts to claim it. */
    events(taskId: string, query?: { limit?: number; after?: string; type?: string; order?: "asc" | "desc" }, options?: CallOptions): Pages<T.Event>;
    /** List the tasks of a queue in one state. */
    list(queueId: string, query: { limit?: number; after?: string; state: "available" | "awaiting_approval" | "blocked" | "cancelled" | "claimed" | "completed" | "created" | "failed" | "working" }, options?: CallOptions): Pages<T.TaskSummary>;
    /** List what may be claimed in a queue, now or as soon as there is something. */
    available(queueId: string, query?: { limit?: number; after?: string; agentId?: string | null; wait?: number }, options?: CallOptions): Pages<T.TaskSummary>;
    /** Create a task in a queue. */
    create(queueId: string, body: T.NewTask, options?: CallOptions): Promise<T.CreatedTask>;
    /** Show a task, now or at any sequence of the ledger. */
    get(taskId: string, query?: { at?: number | null }, options?: CallOptions): Promise<T.Task>;
    /** Explain why a task is not running. */
    explain(taskId: string, options?: CallOptions): Promise<T.Explanation>;
    /** Cancel a task. */
    cancel(taskId: string, body?: T.Extended, options?: CallOptions): Promise<T.TaskChanged>;
    /** Retry a failed or cancelled task. */
    retry(taskId: string, body?: T.Extended, options?: CallOptions): Promise<T.TaskChanged>;
    /** Answer a block. */
    unblock(taskId: string, body?: T.Answer, options?: CallOptions): Promise<T.TaskChanged>;
    /** List the messages about a task. */
    messages(taskId: string, query?: { limit?: number; after?: string }, options?: CallOptions): Pages<T.TaskMessage>;
    /** Raise a concern about work in progress. */
    raiseConcern(taskId: string, body: T.NewConcern, options?: CallOptions): Promise<T.MessageAdded>;
    /** Show the state of all tasks of a context. */
    context(contextId: string, options?: CallOptions): Promise<T.ContextState>;
    /** Create up to 500 tasks in a queue, each with its own result. */
    createMany(queueId: string, body: T.NewTasks, options?: CallOptions): Promise<T.TaskResults>;
    /** Add a message to a task. */
    addMessage(taskId: string, body: T.NewMessage, options?: CallOptions): Promise<T.MessageAdded>;
  };
  usage: {
    /** Show the usage of the workspace, by day, type, agent, model or task. */
    get(query?: { from?: string; to?: string; by?: "agent" | "day" | "model" | "task" | "type" }, options?: CallOptions): Promise<T.UsageReport>;
  };
  webhooks: {
    /** Send events to a URL. */
    create(body: T.NewWebhook, options?: CallOptions): Promise<T.CreatedWebhook>;
    /** List webhooks and the state of their deliveries. */
    list(query?: { limit?: number; after?: string; kind?: "all" | "push" | "webhook" }, options?: CallOptions): Pages<T.Webhook>;
    /** Show a webhook and the state of its deliveries. */
    get(webhookId: string, options?: CallOptions): Promise<T.Webhook>;
    /** Remove a webhook. */
    remove(webhookId: string, options?: CallOptions): Promise<T.WebhookChanged>;
    /** Resume a parked webhook. */
    resume(webhookId: string, options?: CallOptions): Promise<T.WebhookChanged>;
  };
  workflows: {
    /** List what happened in a run; live with Accept: text/event-stream. */
    events(workflowId: string, query?: { limit?: number; after?: string; type?: string; order?: "asc" | "desc" }, options?: CallOptions): Pages<T.Event>;
    /** Approve a task of a run. */
    approve(workflowId: string, planTaskId: string, body?: T.Approval, options?: CallOptions): Promise<T.GateDecided>;
    /** Reject a task of a run. */
    reject(workflowId: string, planTaskId: string, body: T.Rejection, options?: CallOptions): Promise<T.GateDecided>;
    /** Start a plan or a published definition. */
    start(body: T.NewWorkflow, options?: CallOptions): Promise<T.StartedWorkflow>;
    /** List the runs of the workspace. */
    list(query?: { limit?: number; after?: string; state?: "cancelled" | "completed" | "ended" | "failed" | "live" | "paused" | "running" | null }, options?: CallOptions): Pages<T.Workflow>;
    /** Show a run. */
    get(workflowId: string, options?: CallOptions): Promise<T.Workflow>;
    /** Show everything about a run, now or at any sequence of the ledger. */
    state(workflowId: string, query?: { at?: number | null }, options?: CallOptions): Promise<T.WorkflowState>;
    /** Pause a run. */
    pause(workflowId: string, body?: T.Extended, options?: CallOptions): Promise<T.WorkflowChanged>;
    /** Resume a paused run. */
    resume(workflowId: string, body?: T.Extended, options?: CallOptions): Promise<T.WorkflowChanged>;
    /** Cancel a run. */
    cancel(workflowId: string, body?: T.Extended, options?: CallOptions): Promise<T.WorkflowChanged>;
    /** Show a run as nodes and edges, or as Mermaid text. */
    graph(workflowId: string, query?: { at?: number | null; format?: "json" | "mermaid" }, options?: CallOptions): Promise<T.Graph>;
    /** Show a run as nodes and edges, or as Mermaid text. */
    mermaid(workflowId: string, query?: { at?: number | null }, options?: CallOptions): Promise<string>;
    /** List what happened in a run; live with Accept: text/event-stream. */
    follow(workflowId: string, query?: { after?: string; type?: string | readonly string[] }, options?: CallOptions): AsyncGenerator<T.Event, void, undefined>;
  };
  workspaces: {
    /** The policies of a workspace, defaults included. */
    policy(workspaceId: string, options?: CallOptions): Promise<T.Policy>;
    /** Set policies of a workspace: block routes, cost caps, retries, self-approval, public receipts. */
    setPolicy(workspaceId: string, body?: T.PolicyPatch, options?: CallOptions): Promise<T.PolicyChange>;
    /** Fold later records under newer rules; for operators. */
    raiseRules(workspaceId: string, body: T.NewRules, options?: CallOptions): Promise<T.RaisedRules>;
    /** List the caller's workspace; all workspaces for operators. */
    list(query?: { limit?: number; after?: string; own?: boolean }, options?: CallOptions): Pages<T.Workspace>;
    /** Create a workspace; its first key is shown once. */
    create(body?: T.NewWorkspace, options?: CallOptions): Promise<T.CreatedWorkspace>;
  };
  bus: {
    /** Show that the bus answers. */
    health(options?: CallOptions): Promise<T.BusHealth>;
    /** List the sessions of the workspace. */
    sessions(query?: { status?: "all" | "closed" | "open"; after?: string; limit?: number }, options?: CallOptions): Promise<T.BusSession[]>;
    /** Create a session, or get the one that has this id. */
    createSession(body?: T.NewBusSession, options?: CallOptions): Promise<T.BusSession>;
    /** Follow the sessions that are created and closed, as server-sent events. */
    watchSessions(query?: { after?: number | null; follow?: boolean }, options?: CallOptions): AsyncGenerator<T.BusSessionEvent, void, undefined>;
    /** Show a session. */
    session(sessionId: string, options?: CallOptions): Promise<T.BusSession>;
    /** Close a session; its agents are disconnected. */
    closeSession(sessionId: string, options?: CallOptions): Promise<T.BusSession>;
    /** List the agents. */
    agents(sessionId: string, options?: CallOptions): Promise<T.BusAgent[]>;
    /** Add an agent, or get the one that has this id. */
    addAgent(sessionId: string, body?: T.NewBusAgent, options?: CallOptions): Promise<T.BusAgent>;
    /** Put the agents in another order. */
    orderAgents(sessionId: string, body: T.BusAgentOrder, options?: CallOptions): Promise<T.BusAgent[]>;
    /** Change the name, the status or the lead of an agent. */
    changeAgent(sessionId: string, agentId: string, body?: T.BusAgentChange, options?: CallOptions): Promise<T.BusAgent>;
    /** Remove an agent and the messages that wait for it. */
    removeAgent(sessionId: string, agentId: string, options?: CallOptions): Promise<void>;
    /** List the messages that wait for an agent. */
    mail(sessionId: string, agentId: string, query?: { limit?: number; after?: number; wait?: number }, options?: CallOptions): Promise<T.BusMessage[]>;
    /** Send a message to agents; it is durable when this answers. */
    send(sessionId: string, body?: T.NewBusMessage, options?: CallOptions): Promise<T.Accepted>;
    /** Show a message and the state of its deliveries. */
    message(sessionId: string, messageId: string, options?: CallOptions): Promise<T.BusMessage>;
    /** Confirm a message for an agent. */
    acknowledge(sessionId: string, messageId: string, body: T.BusMessageTaken, options?: CallOptions): Promise<void>;
    /** List the events of a session. */
    events(sessionId: string, query?: { limit?: number; after?: number | null; before?: number | null; wait?: number }, options?: CallOptions): Promise<T.BusEvent[]>;
    /** Follow the events of a session, as server-sent events. */
    follow(sessionId: string, query?: { after?: number | null; follow?: boolean }, options?: CallOptions): AsyncGenerator<T.BusEvent, void, undefined>;
    /** Show whether a session is bound. */
    ledger(sessionId: string, options?: CallOptions): Promise<T.BusLedger>;
    /** Send a session the events recorded from now on. */
    bind(sessionId: string, options?: CallOptions): Promise<T.BusLedger>;
    /** Send a session no more events. */
    unbind(sessionId: string, options?: CallOptions): Promise<T.BusLedger>;
    /** Record a message as an Inbox Wire. */
    record(sessionId: string, messageId: string, body?: T.BusRecording, options?: CallOptions): Promise<T.BusMail>;
  };
}
