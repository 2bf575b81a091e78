// Written by `python -m tools.typescript` from the OpenAPI document; `make verify` proves it current.
import type { CallOptions, Pages } from "../calls.js";
import type * as T from "./types.js";

/** Every operation of the API, by the names of the Python SDK. */
export interface Api {
  agents: {
    /** Register an agent by its Agent Card, A2A of either shape or RedKey's own. */
    register(body?: T.AgentRegistration, options?: CallOptions): Promise<T.RegisteredAgent>;
    /** List agents. */
    list(query?: { limit?: number; after?: string; slug?: string | null; role?: string | null; active?: boolean | null }, options?: CallOptions): Pages<T.Agent>;
    /** One agent, with its card. */
    get(agentId: string, options?: CallOptions): Promise<T.Agent>;
    /** Change an agent. */
    update(agentId: string, body?: T.AgentPatch, options?: CallOptions): Promise<T.Agent>;
    /** Tell that an agent is alive, and how much work it can take. */
    heartbeat(agentId: string, body?: T.AgentBeat, options?: CallOptions): Promise<T.AgentHeard>;
    /** Deactivate an agent. */
    deactivate(agentId: string, options?: CallOptions): Promise<T.DeactivatedAgent>;
    /** How an agent's claims went, the newest first. */
    claimHistory(agentId: string, query?: { limit?: number; after?: string }, options?: CallOptions): Pages<T.ClaimHistoryItem>;
    /** What an agent did and what happened to it, such as claims it missed; live with Accept: text/event-stream. */
    events(agentId: string, query?: { limit?: number; after?: string; type?: string; order?: "asc" | "desc" }, options?: CallOptions): Pages<T.Event>;
    /** Messages to an agent, by priority, then by age. */
    inbox(agentId: string, query?: { limit?: number; after?: string; unread?: boolean }, options?: CallOptions): Pages<T.InboxMessage>;
    /** What an agent did and what happened to it, such as claims it missed; live with Accept: text/event-stream. */
    follow(agentId: string, query?: { after?: string; type?: string | readonly string[] }, options?: CallOptions): AsyncGenerator<T.Event, void, undefined>;
  };
  billing: {
    /** What the workspace may spend. */
    credits(options?: CallOptions): Promise<T.Credits>;
    /** Grant credits to a workspace. */
    grant(body: T.CreditsGrant, options?: CallOptions): Promise<T.CreditsGranted>;
    /** Set what requests cost in a workspace, from now on. */
    setPrices(body: T.NewPrices, options?: CallOptions): Promise<T.PricesSet>;
  };
  checkpoints: {
    /** The newest signed head of the workspace's log; as the signed note itself with Accept: text/plain. */
    latest(options?: CallOptions): Promise<T.Checkpoint>;
  };
  claims: {
    /** Complete up to 500 claims, each with its own result. */
    completeMany(body: T.Completions, options?: CallOptions): Promise<T.ClaimResults>;
    /** Say that the work has begun. */
    start(claimId: string, options?: CallOptions): Promise<T.ClaimChanged>;
    /** Give a task back. */
    release(claimId: string, options?: CallOptions): Promise<T.ClaimChanged>;
    /** Keep the lease, and learn whether it holds. */
    heartbeat(claimId: string, body?: T.HolderActivity, options?: CallOptions): Promise<T.Heartbeat>;
    /** Say that the work cannot go on. Those who can lift the block get a message. */
    block(claimId: string, body: T.BlockReport, options?: CallOptions): Promise<T.ClaimChanged>;
    /** Add an artifact: inline, as content put before, or elsewhere by URI and hash. */
    addArtifact(claimId: string, body: T.NewArtifact, options?: CallOptions): Promise<T.ArtifactAdded>;
    /** Tell how the holder means to go about it. */
    plan(claimId: string, body: T.HolderPlan, options?: CallOptions): Promise<T.ClaimChanged>;
    /** Report what model calls cost, and learn what the caps leave. */
    reportUsage(claimId: string, body: T.NewUsage, options?: CallOptions): Promise<T.ClaimSpending>;
    /** Say how far the work has come. */
    reportProgress(claimId: string, body?: T.NewProgress, options?: CallOptions): Promise<T.ProgressReported>;
    /** Complete a task; with claimNext the next claim comes in the same reply. */
    complete(claimId: string, body?: T.Completion, options?: CallOptions): Promise<T.ClaimEnded>;
    /** Say that a task could not be done. */
    fail(claimId: string, body: T.FailureReport, options?: CallOptions): Promise<T.ClaimEnded>;
    /** What happened to a claim. */
    events(claimId: string, query?: { limit?: number; after?: string; type?: string; order?: "asc" | "desc" }, options?: CallOptions): Pages<T.Event>;
  };
  content: {
    /** A body. */
    get(sha256: string, options?: CallOptions): Promise<Uint8Array<ArrayBuffer>>;
    /** Erase a body. Its hash stays on the ledger, its bytes are gone. */
    erase(sha256: string, options?: CallOptions): Promise<T.ErasedContent>;
    /** Keep a body of up to 1 GiB under its SHA-256. */
    put(data: Uint8Array<ArrayBuffer> | string | Blob, query?: { sha256?: string | null }, options?: CallOptions): Promise<T.KeptContent>;
  };
  definitions: {
    /** Check a plan without saving or starting it; always 200. */
    validate(body: T.PlanBody, options?: CallOptions): Promise<T.Validation>;
    /** Simulate a plan; nothing is recorded. */
    simulate(body: T.PlanSimulation, options?: CallOptions): Promise<T.PlanForecast>;
    /** Save a plan as the draft of a new definition. */
    create(body: T.NewDefinition, options?: CallOptions): Promise<T.Draft>;
    /** The definitions of the workspace. */
    list(query?: { limit?: number; after?: string }, options?: CallOptions): Pages<T.DefinitionSummary>;
    /** One definition with its versions and a plan. */
    get(definitionId: string, query?: { version?: number | null }, options?: CallOptions): Promise<T.Definition>;
    /** Change the draft by a JSON merge patch. */
    update(definitionId: string, body: T.DraftChange, options?: CallOptions): Promise<T.Draft>;
    /** Begin the draft of the next version. */
    createVersion(definitionId: string, body?: T.NewVersion, options?: CallOptions): Promise<T.Draft>;
    /** Publish the draft. */
    publish(definitionId: string, options?: CallOptions): Promise<T.Published>;
  };
  events: {
    /** One event. */
    get(eventId: string, options?: CallOptions): Promise<T.Event>;
    /** Follow the workspace's events as server-sent events. */
    follow(query?: { types?: string | readonly string[]; agentId?: string; workflowId?: string; queueId?: string; after?: number | null }, options?: CallOptions): AsyncGenerator<T.Event, void, undefined>;
  };
  gates: {
    /** Approvals that are awaited. */
    list(query?: { limit?: number; after?: string; state?: "closed" | "open" }, options?: CallOptions): Pages<T.Gate>;
    /** One gate. */
    get(gateId: string, options?: CallOptions): Promise<T.Gate>;
    /** Approve what was done. */
    approve(gateId: string, body?: T.Approval, options?: CallOptions): Promise<T.GateDecided>;
    /** Send back what was done. */
    reject(gateId: string, body: T.Rejection, options?: CallOptions): Promise<T.GateDecided>;
  };
  inbox: {
    /** Send a message to an agent, to a role or to the humans. */
    send(body: T.NewInboxMessage, options?: CallOptions): Promise<T.SentMessages>;
    /** Messages to the humans or to an agent, by priority, then by age. */
    list(query?: { limit?: number; after?: string; to?: string | null; unread?: boolean }, options?: CallOptions): Pages<T.InboxMessage>;
    /** Mark a message as read. */
    read(messageId: string, options?: CallOptions): Promise<T.MessageRead>;
  };
  keys: {
    /** Make a key; its secret is shown once. */
    create(workspaceId: string, body: T.NewKey, options?: CallOptions): Promise<T.CreatedKey>;
    /** The keys of a workspace, by prefix. */
    list(workspaceId: string, query?: { limit?: number; after?: string }, options?: CallOptions): Pages<T.Key>;
    /** Revoke a key. */
    revoke(workspaceId: string, keyId: string, options?: CallOptions): Promise<T.RevokedKey>;
  };
  ledger: {
    /** Query the ledger of the workspace. */
    query(query?: { limit?: number; after?: string; type?: string; order?: "asc" | "desc"; agentId?: string; taskId?: string; claimId?: string; workflowId?: string; queueId?: string; from?: string; to?: string }, options?: CallOptions): Pages<T.Event>;
  };
  logins: {
    /** Make a link that opens the Studio. */
    create(options?: CallOptions): Promise<T.LoginCode>;
    /** Exchange a login code for a token. */
    exchange(body: T.LoginCodeExchange, options?: CallOptions): Promise<T.LoginToken>;
  };
  oauth: {
    /** What the authorization server can do (RFC 8414). */
    metadata(options?: CallOptions): Promise<T.OAuthMetadata>;
    /** The keys that sign access tokens. */
    keySet(options?: CallOptions): Promise<T.JsonWebKeySet>;
    /** Exchange a key for a short-lived access token (client credentials). */
    token(body?: { scope?: string | null; client_id?: string | null; client_secret?: string | null }, options?: CallOptions): Promise<T.AccessToken>;
  };
  queues: {
    /** Claim the next task of a queue, at once or as soon as there is one. */
    claimNext(queueId: string, body: T.ClaimNextRequest, options?: CallOptions): Promise<T.Claimed | T.Missed | T.Rejected | T.NoTasks>;
    /** Create a queue. */
    create(body: T.NewQueue, options?: CallOptions): Promise<T.CreatedQueue>;
    /** List queues. */
    list(query?: { limit?: number; after?: string }, options?: CallOptions): Pages<T.Queue>;
    /** One queue and its settings. */
    get(queueId: string, options?: CallOptions): Promise<T.Queue>;
    /** Change a queue's settings and limits. */
    update(queueId: string, body?: T.QueuePatch, options?: CallOptions): Promise<T.Queue>;
  };
  receipts: {
    /** The receipt of an event; with format=proof it can be verified without this server. */
    get(eventId: string, query?: { content?: boolean }, options?: CallOptions): Promise<T.Receipt>;
    /** The receipt of an event; with format=proof it can be verified without this server. */
    summary(eventId: string, query?: { format?: "proof" | "receipt" | "tlog-proof"; content?: boolean }, options?: CallOptions): Promise<T.Receipt>;
    /** The receipt of an event; with format=proof it can be verified without this server. */
    tlogProof(eventId: string, query?: { content?: boolean }, options?: CallOptions): Promise<string>;
    /** What receiptUrl points at: a page for people, the whole receipt for programs. */
    page(eventId: string, options?: CallOptions): Promise<string>;
  };
  roles: {
    /** Create a role. */
    create(body: T.NewRole, options?: CallOptions): Promise<T.CreatedRole>;
    /** List roles. */
    list(query?: { limit?: number; after?: string }, options?: CallOptions): Pages<T.Role>;
    /** One role, with the agents that have it. */
    get(roleId: string, options?: CallOptions): Promise<T.Role>;
    /** Change a role: its name, its description, its capabilities. */
    update(roleId: string, body?: T.RolePatch, options?: CallOptions): Promise<T.UpdatedRole>;
    /** Remove a role. */
    remove(roleId: string, options?: CallOptions): Promise<T.RemovedRole>;
    /** Grant a role to an agent. */
    grant(roleId: string, agentId: string, options?: CallOptions): Promise<T.RoleGrant>;
    /** Take a role from an agent. */
    revoke(roleId: string, agentId: string, options?: CallOptions): Promise<T.RoleGrant>;
  };
  server: {
    /** The process is alive. */
    health(options?: CallOptions): Promise<T.Health>;
    /** The server can serve. */
    ready(options?: CallOptions): Promise<T.Readiness>;
    /** This API as OpenAPI 3.1. */
    openapi(options?: CallOptions): Promise<Record<string, unknown>>;
    /** This API as a page. */
    docs(options?: CallOptions): Promise<string>;
    /** Ids that begin with a prefix. */
    findIds(prefix: string, options?: CallOptions): Promise<T.FoundIds>;
    /** Figures for Prometheus. */
    metrics(options?: CallOptions): Promise<string>;
  };
  tasks: {
    /** Claim a task: exactly one agent wins, and every other learns who. */
    claim(taskId: string, body: T.ClaimRequest, options?: CallOptions): Promise<T.Claimed | T.Missed | T.Rejected>;
    /** What happened to a task, with the attempts to claim it. */
    events(taskId: string, query?: { limit?: number; after?: string; type?: string; order?: "asc" | "desc" }, options?: CallOptions): Pages<T.Event>;
    /** The tasks of a queue in one state. */
    list(queueId: string, query: { limit?: number; after?: string; state: "available" | "blocked" | "cancelled" | "claimed" | "completed" | "created" | "failed" | "working" }, options?: CallOptions): Pages<T.TaskSummary>;
    /** What may be claimed in a queue, at once or as soon as there is something. */
    available(queueId: string, query?: { limit?: number; after?: string; agentId?: string | null; wait?: number }, options?: CallOptions): Pages<T.TaskSummary>;
    /** Put a task on a queue. */
    create(queueId: string, body: T.NewTask, options?: CallOptions): Promise<T.CreatedTask>;
    /** Put up to 500 tasks on a queue, each with its own result. */
    createMany(queueId: string, body: T.NewTasks, options?: CallOptions): Promise<T.TaskResults>;
    /** One task, now or at any place of the ledger. */
    get(taskId: string, query?: { at?: number | null }, options?: CallOptions): Promise<T.Task>;
    /** Why a task is not running. */
    explain(taskId: string, options?: CallOptions): Promise<T.Explanation>;
    /** Cancel a task. */
    cancel(taskId: string, options?: CallOptions): Promise<T.TaskChanged>;
    /** Try a failed or cancelled task again. */
    retry(taskId: string, options?: CallOptions): Promise<T.TaskChanged>;
    /** Answer a block. */
    unblock(taskId: string, body?: T.Answer, options?: CallOptions): Promise<T.TaskChanged>;
    /** What was said about a task. */
    messages(taskId: string, query?: { limit?: number; after?: string }, options?: CallOptions): Pages<T.TaskMessage>;
    /** Raise a concern about work in progress. */
    raiseConcern(taskId: string, body: T.NewConcern, options?: CallOptions): Promise<T.MessageAdded>;
    /** The state of all tasks that share a context. */
    context(contextId: string, options?: CallOptions): Promise<T.ContextState>;
    /** Say something about a task. */
    addMessage(taskId: string, body: T.NewMessage, options?: CallOptions): Promise<T.MessageAdded>;
  };
  usage: {
    /** What the workspace used, by day, type, agent, model or task. */
    get(query?: { from?: string; to?: string; by?: "agent" | "day" | "model" | "task" | "type" }, options?: CallOptions): Promise<T.UsageReport>;
  };
  webhooks: {
    /** Send events to a URL. */
    create(body: T.NewWebhook, options?: CallOptions): Promise<T.CreatedWebhook>;
    /** The webhooks of the workspace, and how far each has got. */
    list(query?: { limit?: number; after?: string; kind?: "all" | "push" | "webhook" }, options?: CallOptions): Pages<T.Webhook>;
    /** One webhook, and how far it has got. */
    get(webhookId: string, options?: CallOptions): Promise<T.Webhook>;
    /** Send nothing more to a webhook. */
    remove(webhookId: string, options?: CallOptions): Promise<T.WebhookChanged>;
    /** Try a parked webhook again. */
    resume(webhookId: string, options?: CallOptions): Promise<T.WebhookChanged>;
  };
  workflows: {
    /** What happened in a run; live with Accept: text/event-stream. */
    events(workflowId: string, query?: { limit?: number; after?: string; type?: string; order?: "asc" | "desc" }, options?: CallOptions): Pages<T.Event>;
    /** Approve a task of a run. */
    approve(workflowId: string, planTaskId: string, body?: T.Approval, options?: CallOptions): Promise<T.GateDecided>;
    /** Send back a task of a run. */
    reject(workflowId: string, planTaskId: string, body: T.Rejection, options?: CallOptions): Promise<T.GateDecided>;
    /** Start a plan or a published definition. */
    start(body: T.NewWorkflow, options?: CallOptions): Promise<T.StartedWorkflow>;
    /** The runs of the workspace. */
    list(query?: { limit?: number; after?: string; state?: "cancelled" | "completed" | "ended" | "failed" | "live" | "paused" | "running" | null }, options?: CallOptions): Pages<T.Workflow>;
    /** One run. */
    get(workflowId: string, options?: CallOptions): Promise<T.Workflow>;
    /** Everything about a run, now or at any place of the ledger. */
    state(workflowId: string, query?: { at?: number | null }, options?: CallOptions): Promise<T.WorkflowState>;
    /** Pause a run. */
    pause(workflowId: string, options?: CallOptions): Promise<T.WorkflowChanged>;
    /** Let a paused run go on. */
    resume(workflowId: string, options?: CallOptions): Promise<T.WorkflowChanged>;
    /** End a run at once. */
    cancel(workflowId: string, options?: CallOptions): Promise<T.WorkflowChanged>;
    /** A run as nodes and edges, or as Mermaid text. */
    graph(workflowId: string, query?: { at?: number | null; format?: "json" | "mermaid" }, options?: CallOptions): Promise<T.Graph>;
    /** A run as nodes and edges, or as Mermaid text. */
    mermaid(workflowId: string, query?: { at?: number | null }, options?: CallOptions): Promise<string>;
    /** What happened in a run; live with Accept: text/event-stream. */
    follow(workflowId: string, query?: { after?: string; type?: string | readonly string[] }, options?: CallOptions): AsyncGenerator<T.Event, void, undefined>;
  };
  workspaces: {
    /** The policies of a workspace, defaults included. */
    policy(workspaceId: string, options?: CallOptions): Promise<T.Policy>;
    /** Set policies of a workspace: block routes, cost caps, self-approval, public receipts. */
    setPolicy(workspaceId: string, body?: T.PolicyPatch, options?: CallOptions): Promise<T.PolicyChange>;
    /** Let later records fold under newer rules; for operators. */
    raiseRules(workspaceId: string, body: T.NewRules, options?: CallOptions): Promise<T.RaisedRules>;
    /** The caller's workspace; all of them for operators. */
    list(query?: { limit?: number; after?: string }, options?: CallOptions): Pages<T.Workspace>;
    /** Begin a workspace; its first key is shown once. */
    create(body?: T.NewWorkspace, options?: CallOptions): Promise<T.CreatedWorkspace>;
  };
  bus: {
    /** Show that the bus answers. */
    health(options?: CallOptions): Promise<T.BusHealth>;
    /** List the sessions of the workspace. */
    sessions(query?: { status?: "all" | "closed" | "open"; after?: string; limit?: number }, options?: CallOptions): Promise<T.BusSession[]>;
    /** Create a session, or get the one that has this id. */
    createSession(body?: T.NewBusSession, options?: CallOptions): Promise<T.BusSession>;
    /** Follow sessions that come and go, as server-sent events. */
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
    /** Remove an agent and what waits for it. */
    removeAgent(sessionId: string, agentId: string, options?: CallOptions): Promise<void>;
    /** List the messages that wait for an agent. */
    mail(sessionId: string, agentId: string, query?: { limit?: number; after?: number; wait?: number }, options?: CallOptions): Promise<T.BusMessage[]>;
    /** Send a message to agents; it is durable when this answers. */
    send(sessionId: string, body?: T.NewBusMessage, options?: CallOptions): Promise<T.BusMessage[]>;
    /** Show a message and how far it has come. */
    message(sessionId: string, messageId: string, options?: CallOptions): Promise<T.BusMessage>;
    /** Confirm a message for an agent. */
    acknowledge(sessionId: string, messageId: string, body: T.BusMessageTaken, options?: CallOptions): Promise<void>;
    /** List the events of a session. */
    events(sessionId: string, query?: { limit?: number; after?: number | null; before?: number | null; wait?: number }, options?: CallOptions): Promise<T.BusEvent[]>;
    /** Follow the events of a session, as server-sent events. */
    follow(sessionId: string, query?: { after?: number | null; follow?: boolean }, options?: CallOptions): AsyncGenerator<T.BusEvent, void, undefined>;
    /** Show whether a session is bound. */
    ledger(sessionId: string, options?: CallOptions): Promise<T.BusLedger>;
    /** Tell a session what is recorded from now on. */
    bind(sessionId: string, options?: CallOptions): Promise<T.BusLedger>;
    /** Tell a session nothing more. */
    unbind(sessionId: string, options?: CallOptions): Promise<T.BusLedger>;
    /** Record a message as an Inbox Wire. */
    record(sessionId: string, messageId: string, body?: T.BusRecording, options?: CallOptions): Promise<T.BusMail>;
  };
}
