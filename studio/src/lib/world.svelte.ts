/**
 * What the page knows of the workspace: a snapshot by the API, then every event of one stream, folded in order.
 *
 * Events come in bursts of hundreds. They are folded into plain maps, ten times a second, and `version` tells the
 * views that something changed; deep reactivity would cost more than the work itself.
 */
import type { types } from "redkey";
import { clock } from "./clock.svelte";
import { shortId } from "./format";
import { session } from "./session.svelte";

/** A task as lists show it. */
export interface LiveTask {
  taskId: string;
  queueId: string;
  workflowId: string;
  title: string;
  state: string;
  attempt: number;
  roles: readonly string[];
  agentId: string;
  leaseExpiresAt: string;
  since: string;
  percent: number | undefined;
  said: string;
}

/** One try to claim a task, in the order of the ledger. */
export interface Attempt {
  sequence: number;
  at: string;
  taskId: string;
  agentId: string;
  claimId: string;
  outcome: "won" | "missed" | "rejected" | "asked";
  winner: string;
  reason: string;
}

export const LIVE = ["created", "available", "claimed", "working", "blocked"] as const;
const STATES: Record<string, string> = {
  "task.available": "available",
  "task.claimed": "claimed",
  "task.started": "working",
  "task.blocked": "blocked",
  "task.unblocked": "available",
  "task.released": "available",
  "task.lease_expired": "available",
  "task.stalled": "available",
  "task.complete": "completed",
  "task.failed": "failed",
  "task.cancelled": "cancelled",
};
const OUTCOMES: Record<string, Attempt["outcome"]> = {
  "task.claim_attempted": "asked",
  "task.claimed": "won",
  "task.claim_missed": "missed",
  "task.claim_rejected": "rejected",
};
const KEPT_EVENTS = 400;
const KEPT_ENDED = 300;
const KEPT_ATTEMPTS = 3000;
/** The lists that are read again when an event says that they changed, by how the type of the event begins. */
const LISTS = { agent: "agents", role: "roles", queue: "queues", gate: "gates", workflow: "runs", webhook: "webhooks", credits: "credits" } as const;
type List = (typeof LISTS)[keyof typeof LISTS];
const FOLD_MS = 100;
const RATE_SECONDS = 60;
/** More live tasks than this are counted, not kept. */
const MOST_TASKS = 20_000;

export class World {
  /** Grows with every change. Views read it first. */
  version = $state(0);
  ready = $state(false);
  failure = $state("");
  tasks = new Map<string, LiveTask>();
  agents = new Map<string, types.Agent>();
  roles = new Map<string, types.Role>();
  queues = new Map<string, types.Queue>();
  gates = new Map<string, types.Gate>();
  runs = new Map<string, types.Workflow>();
  webhooks = new Map<string, types.Webhook>();
  credits: types.Credits | undefined;
  /** The newest first. */
  events: types.Event[] = [];
  attempts: Attempt[] = [];
  head = 0;
  #ended: string[] = [];
  #coming: types.Event[] = [];
  #frame = false;
  #rates = new Map<number, { events: number; done: number; missed: number }>();
  #again = new Map<List, ReturnType<typeof setTimeout>>();
  #wanted: string[] = [];
  #asked = new Set<string>();
  #asking = 0;
  #stop = new AbortController();
  #heard = new Set<(event: types.Event) => void>();

  /** Read the snapshot, then follow. Runs until `stop`. */
  async start(): Promise<void> {
    const { client } = session;
    try {
      this.head = (await client.ledger.query({ order: "desc", limit: 1 }).page()).items[0]?.sequence ?? 0;
      await Promise.all([this.#readTasks(), ...Object.values(LISTS).map((list) => this.#read(list))]);
      const recent = (await client.ledger.query({ order: "desc", limit: 60 }).page()).items;
      this.events = recent.filter((event) => event.sequence <= this.head);
      this.ready = true;
      this.version++;
      for await (const event of client.events.follow({ after: this.head }, { signal: this.#stop.signal })) {
        this.#take(event);
      }
    } catch (error) {
      if (this.#stop.signal.aborted || session.endsWith(error)) return;
      this.failure = error instanceof Error ? error.message : String(error);
    }
  }

  stop(): void {
    this.#stop.abort();
    for (const timer of this.#again.values()) clearTimeout(timer);
  }

  /** Call `heard` with each event from now on, after it was folded; what it returns ends that. */
  listen(heard: (event: types.Event) => void): () => void {
    this.#heard.add(heard);
    return () => this.#heard.delete(heard);
  }

  agentName(id: string): string {
    void this.version;
    const agent = this.agents.get(id);
    return agent?.slug || agent?.name || (id ? shortId(id) : "nobody");
  }

  /** The title of a task; its id until the title has been read. */
  title(id: string): string {
    void this.version;
    const task = this.tasks.get(id);
    if (task?.title) return task.title;
    this.#want(id);
    return shortId(id);
  }

  /** The tasks in these states, the oldest change first. */
  inState(...states: string[]): LiveTask[] {
    return [...this.tasks.values()].filter((task) => states.includes(task.state)).sort((a, b) => (a.since < b.since ? -1 : 1));
  }

  /** How much happened in each of the last seconds. */
  rates(now: number): { events: number; done: number; missed: number }[] {
    const second = Math.floor(now / 1000);
    return Array.from({ length: RATE_SECONDS }, (_, index) => this.#rates.get(second - RATE_SECONDS + 1 + index) ?? NOTHING);
  }

  /** Read a list again soon: something about it changed. */
  refresh(list: List): void {
    if (this.#again.has(list)) return;
    const again = () => {
      this.#again.delete(list);
      this.#read(list).catch((error: unknown) => session.endsWith(error));
    };
    this.#again.set(list, setTimeout(again, list === "credits" ? 2000 : 250));
  }

  #take(event: types.Event): void {
    this.#coming.push(event);
    if (this.#frame) return;
    this.#frame = true;
    // Ten times a second is live enough, and leaves the rest of each second to whoever scrolls.
    setTimeout(() => this.#foldAll(), FOLD_MS);
  }

  #foldAll(): void {
    this.#frame = false;
    const events = this.#coming;
    this.#coming = [];
    for (const event of events) this.#fold(event);
    const last = events.at(-1);
    if (last) clock.heard(last.timestamp);
    // Every record may cost something where there is a limit.
    if (typeof this.credits?.balance === "number") this.refresh("credits");
    this.events = [...events.toReversed(), ...this.events].slice(0, KEPT_EVENTS);
    if (this.attempts.length > KEPT_ATTEMPTS * 2) this.attempts.splice(0, this.attempts.length - KEPT_ATTEMPTS);
    this.version++;
  }

  #fold(event: types.Event): void {
    const { type, sequence, timestamp } = event;
    this.head = Math.max(this.head, sequence);
    const data = event.data as Record<string, string | undefined>;
    if (type.startsWith("task.")) this.#foldTask(event, data);
    this.#count(type, timestamp);
    const agent = data["agentId"] ? this.agents.get(data["agentId"]) : undefined;
    if (agent && event.actor.id === agent.agentId) this.agents.set(agent.agentId, { ...agent, lastActAt: timestamp });
    const list = LISTS[type.slice(0, type.indexOf(".")) as keyof typeof LISTS];
    if (list) this.refresh(list);
    // A grant changes who is eligible, a held task how busy its agent is, an ended one the counts of its run.
    if (type === "role.granted" || type === "role.revoked") this.refresh("agents");
    if (type === "task.claimed" || type === "task.complete") this.refresh("agents");
    if (data["workflowId"] || this.tasks.get(data["taskId"] ?? "")?.workflowId) this.refresh("runs");
    for (const heard of this.#heard) heard(event);
  }

  #foldTask(event: types.Event, data: Record<string, string | undefined>): void {
    const { type, timestamp } = event;
    const taskId = data["taskId"] ?? event.subject.id;
    const outcome = OUTCOMES[type];
    if (outcome) this.#attempt(event, outcome);
    const known = this.tasks.get(taskId);
    if (!known && type !== "task.created" && !STATES[type]) return;
    // A new object each time: views notice a change by that.
    const task: LiveTask = known
      ? { ...known }
      : { taskId, queueId: data["queueId"] ?? "", workflowId: data["workflowId"] ?? "", title: "", state: "created", attempt: 1, roles: (event.data["roles"] as string[] | undefined) ?? [], agentId: "", leaseExpiresAt: "", since: timestamp, percent: undefined, said: "" };
    this.tasks.set(taskId, task);
    if (!known && type !== "task.created") this.#want(taskId);
    const attempt = Number(event.data["attempt"] ?? task.attempt);
    // What another attempt did is over.
    if (attempt < task.attempt) return;
    task.attempt = attempt;
    if (data["leaseExpiresAt"]) task.leaseExpiresAt = data["leaseExpiresAt"];
    if (type === "task.claimed") task.agentId = data["agentId"] ?? "";
    if (type === "task.progress") task.percent = Number(event.data["percent"] ?? 0);
    const state = STATES[type];
    if (!state) return;
    if (state === "available") [task.agentId, task.leaseExpiresAt, task.percent] = ["", "", undefined];
    if (state !== task.state) [task.state, task.since] = [state, timestamp];
    if (state === "completed" || state === "failed" || state === "cancelled") this.#end(taskId);
  }

  /** Ended tasks leave, the oldest first. */
  #end(taskId: string): void {
    this.#ended.push(taskId);
    if (this.#ended.length <= KEPT_ENDED) return;
    const gone = this.#ended.shift() ?? "";
    const task = this.tasks.get(gone);
    if (task && !LIVE.includes(task.state as never)) this.tasks.delete(gone);
    this.#asked.delete(gone);
  }

  #attempt(event: types.Event, outcome: Attempt["outcome"]): void {
    const attempt = attemptOf(event, outcome);
    if (outcome !== "asked") {
      // The outcome follows its attempt at once: one line is enough.
      const asked = this.attempts.findLastIndex((one) => one.claimId === attempt.claimId);
      if (asked >= 0) this.attempts.splice(asked, 1);
    }
    this.attempts.push(attempt);
  }

  #count(type: string, timestamp: string): void {
    const second = Math.floor(Date.parse(timestamp) / 1000);
    const rate = this.#rates.get(second) ?? { events: 0, done: 0, missed: 0 };
    rate.events++;
    if (type === "task.complete") rate.done++;
    if (type === "task.claim_missed") rate.missed++;
    this.#rates.set(second, rate);
    if (this.#rates.size > RATE_SECONDS * 2) this.#rates.delete(this.#rates.keys().next().value ?? 0);
  }

  async #readTasks(): Promise<void> {
    for await (const queue of session.client.queues.list({ limit: 500 })) {
      this.queues.set(queue.queueId, queue);
      for (const state of [...LIVE, "failed"] as const) {
        for await (const task of session.client.tasks.list(queue.queueId, { state, limit: 500 })) {
          this.tasks.set(task.taskId, summary(task));
          if (this.tasks.size >= MOST_TASKS) return;
          if (state === "failed" && this.tasks.size > 500) break;
        }
      }
    }
    // Lists do not show leases: read those of what is held now.
    const held = this.inState("claimed", "working").slice(0, 200);
    await Promise.all(held.map((task) => this.#readTask(task.taskId)));
  }

  async #readTask(taskId: string): Promise<void> {
    const task = await session.client.tasks.get(taskId);
    const known = this.tasks.get(taskId);
    const read = { ...summary(task), leaseExpiresAt: task.claim?.leaseExpiresAt ?? "" };
    // The stream may be ahead of this answer: what it said stays.
    this.tasks.set(taskId, known ? { ...read, ...moving(known, read) } : read);
  }

  async #read(list: List): Promise<void> {
    const { client } = session;
    if (list === "agents") this.agents = await all(client.agents.list({ limit: 500 }), (one) => one.agentId);
    else if (list === "roles") this.roles = await all(client.roles.list({ limit: 500 }), (one) => one.id);
    else if (list === "queues") this.queues = await all(client.queues.list({ limit: 500 }), (one) => one.queueId);
    else if (list === "gates") this.gates = await all(client.gates.list({ state: "open", limit: 500 }), (one) => one.gateId);
    else if (list === "runs") this.runs = await all(client.workflows.list({ limit: 200 }), (one) => one.workflowId, 200);
    else if (list === "webhooks" && session.may("admin", "operator")) {
      this.webhooks = await all(client.webhooks.list({ kind: "all", limit: 100 }), (one) => one.webhookId);
    } else if (list === "credits") this.credits = await client.billing.credits();
    this.version++;
  }

  /** Read titles that a view asked for, the newest wish first; what nobody sees any more is dropped. */
  #want(id: string): void {
    if (this.#asked.has(id) || !id.startsWith("task_")) return;
    this.#asked.add(id);
    this.#wanted.push(id);
    if (this.#wanted.length > 60) this.#asked.delete(this.#wanted.shift() ?? "");
    if (this.#asking < 4) void this.#readWanted();
  }

  async #readWanted(): Promise<void> {
    this.#asking++;
    for (let id = this.#wanted.pop(); id; id = this.#wanted.pop()) {
      try {
        const known = this.tasks.has(id);
        await this.#readTask(id);
        if (!known) this.#end(id);
        this.version++;
      } catch (error) {
        if (session.endsWith(error)) break;
      }
    }
    this.#asking--;
  }
}

const NOTHING = { events: 0, done: 0, missed: 0 };

export function attemptOf(event: types.Event, outcome = OUTCOMES[event.type] ?? "asked"): Attempt {
  const data = event.data as Record<string, string | undefined>;
  return {
    sequence: event.sequence,
    at: event.timestamp,
    taskId: data["taskId"] ?? event.subject.id,
    agentId: data["agentId"] ?? "",
    claimId: data["claimId"] ?? "",
    outcome,
    winner: data["winningAgentId"] ?? "",
    reason: data["reason"] ?? "",
  };
}

function summary(task: types.TaskSummary): LiveTask {
  const { taskId, queueId, workflowId = "", title = "", state, attempt, agentId = "" } = task;
  const held = state === "claimed" || state === "working";
  return { taskId, queueId, workflowId, title, state, attempt, roles: task.requiredRoles, agentId: held ? agentId : "", leaseExpiresAt: "", since: task.updatedAt, percent: undefined, said: "" };
}

/** What the stream knows better than an answer that may be older. */
function moving(known: LiveTask, read: LiveTask): Partial<LiveTask> {
  if (known.since < read.since) return {};
  const { state, attempt, agentId, leaseExpiresAt, since, percent } = known;
  return { state, attempt, agentId, since, percent, leaseExpiresAt: leaseExpiresAt || read.leaseExpiresAt };
}

async function all<Item>(pages: AsyncIterable<Item>, id: (item: Item) => string, most = 5000): Promise<Map<string, Item>> {
  const found = new Map<string, Item>();
  for await (const item of pages) {
    found.set(id(item), item);
    if (found.size >= most) break;
  }
  return found;
}
