/**
 * What the page knows of the workspace: a snapshot by the API, then every event of one stream, folded in order.
 *
 * Events come in bursts of hundreds. They are folded into plain maps, ten times a second and for a few milliseconds at
 * most, and `version` tells the views that something changed; deep reactivity would cost more than the work itself.
 * A timer and not an animation frame: a tab in the background has no frames, and its events must not pile up.
 */
import type { types } from "redkey";
import { clock } from "./clock.svelte";
import { shortId } from "./format";
import { session } from "./session.svelte";
import { Tasks, type LiveTask } from "./tasks";

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
const KEPT_EVENTS = 400;
const KEPT_ENDED = 300;
/** The lists that are read again when an event says that they changed, by how the type of the event begins. */
const LISTS = { agent: "agents", role: "roles", queue: "queues", gate: "gates", workflow: "runs", webhook: "webhooks", credits: "credits" } as const;
type List = (typeof LISTS)[keyof typeof LISTS];
const FOLD_MS = 100;
/** A burst is folded for so long at a time. The rest has its turn after the views have been drawn. */
const BUDGET_MS = 8;
/** A list that many events change is read again only after a rest of so many times what reading it took. */
const REST_TIMES = 10;
/** How long each of the four readers of titles waits after one. */
const TITLE_MS = 150;
const RATE_SECONDS = 60;
const PACE_MINUTES = 10;
/** Of so many queues, and at most so many events of each kind, the last minutes before the start are read. */
const MOST_PACES = 100;
const MOST_PACE_EVENTS = 5000;
const PACES: Record<string, keyof Pace> = { "task.complete": "done", "task.claimed": "won", "task.claim_missed": "missed" };
const ENDED = new Set(["completed", "failed", "cancelled"]);
/** No agent works on tasks in these states. */
const IDLE = new Set(["created", "available", ...ENDED]);
/** At most so many tasks are kept. Beyond it, tasks that nobody works on are left out. */
const MOST_TASKS = 20_000;
const MOST_FAILED = 500;

export class World {
  /** Grows with every change. Views read it first. */
  version = $state(0);
  ready = $state(false);
  failure = $state("");
  tasks = new Tasks();
  agents = new Map<string, types.Agent>();
  roles = new Map<string, types.Role>();
  queues = new Map<string, types.Queue>();
  gates = new Map<string, types.Gate>();
  runs = new Map<string, types.Workflow>();
  webhooks = new Map<string, types.Webhook>();
  credits: types.Credits | undefined;
  /** The newest first. */
  events: types.Event[] = [];
  head = 0;
  /** Whether there are more tasks than the page keeps. */
  truncated = false;
  #ended: string[] = [];
  /** What happened in each queue, by minute. */
  #pace = new Map<string, Map<number, Pace>>();
  #coming: types.Event[] = [];
  #frame = false;
  #rates = new Map<number, { events: number; done: number; missed: number }>();
  #again = new Map<List, ReturnType<typeof setTimeout>>();
  #rests = new Map<List, number>();
  #wanted: string[] = [];
  #asked = new Set<string>();
  #asking = 0;
  #stop = new AbortController();
  #heard = new Set<(event: types.Event) => void>();

  /** Read the snapshot, then follow. Runs until `stop`. */
  async start(): Promise<void> {
    const { client } = session;
    try {
      this.events = (await client.ledger.query({ order: "desc", limit: 60 }).page()).items;
      this.head = this.events[0]?.sequence ?? 0;
      const lists = Object.values(LISTS).filter((list) => list !== "queues");
      await Promise.all([this.#readTasks(), ...lists.map((list) => this.#read(list))]);
      this.ready = true;
      this.version++;
      this.#readPaces(this.head).catch((error: unknown) => session.endsWith(error));
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
    return agent?.slug || agent?.name || (id ? shortId(id) : "no agent");
  }

  /** The title of a task; its id until the title has been read. */
  title(id: string): string {
    void this.version;
    const task = this.tasks.get(id);
    if (task?.title) return task.title;
    this.#want(id);
    return shortId(id);
  }

  /** How many tasks of a queue were completed, and how many claims were won and missed, in the last ten minutes. */
  pace(queueId: string, now: number): Pace {
    const sum: Pace = { done: 0, won: 0, missed: 0 };
    for (const [minute, pace] of this.#pace.get(queueId) ?? []) {
      if (minute <= Math.floor(now / 60_000) - PACE_MINUTES) continue;
      for (const what of Object.values(PACES)) sum[what] += pace[what];
    }
    return sum;
  }

  /** How much happened in each of the last seconds. */
  rates(now: number): { events: number; done: number; missed: number }[] {
    const second = Math.floor(now / 1000);
    return Array.from({ length: RATE_SECONDS }, (_, index) => this.#rates.get(second - RATE_SECONDS + 1 + index) ?? NOTHING);
  }

  /** Read a list again soon: something about it changed. */
  refresh(list: List): void {
    if (this.#again.has(list)) return;
    const again = async () => {
      const begun = performance.now();
      this.#again.delete(list);
      try {
        await this.#read(list);
      } catch (error) {
        session.endsWith(error);
      }
      this.#rests.set(list, (performance.now() - begun) * REST_TIMES);
    };
    const least = list === "credits" ? 2000 : 250;
    this.#again.set(list, setTimeout(() => void again(), Math.max(least, this.#rests.get(list) ?? 0)));
  }

  #take(event: types.Event): void {
    this.#coming.push(event);
    this.#showSoon();
  }

  /** Let the views see what changed, at most ten times a second, whatever changed it. */
  #showSoon(after = FOLD_MS): void {
    if (this.#frame) return;
    this.#frame = true;
    // Ten times a second is live enough, and leaves the rest of each second to scrolling.
    setTimeout(() => this.#foldAll(), after);
  }

  #foldAll(): void {
    this.#frame = false;
    const until = performance.now() + BUDGET_MS;
    let count = 0;
    while (count < this.#coming.length && (count % 16 || performance.now() < until)) this.#fold(this.#coming[count++]!);
    const events = this.#coming.splice(0, count);
    if (this.#coming.length) this.#showSoon(0);
    const last = events.at(-1);
    if (last) clock.heard(last.timestamp);
    // Every record may cost something where there is a limit.
    if (events.length && typeof this.credits?.balance === "number") this.refresh("credits");
    if (events.length) this.events = [...events.slice(-KEPT_EVENTS).reverse(), ...this.events].slice(0, KEPT_EVENTS);
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
    const known = this.tasks.get(taskId);
    const pace = PACES[type];
    if (known && pace) this.#paceOf(known.queueId, timestamp)[pace]++;
    if (!known && type !== "task.created" && !STATES[type]) return;
    if (!known && this.tasks.size >= MOST_TASKS && (type === "task.created" || IDLE.has(STATES[type] ?? ""))) {
      this.truncated = true;
      return;
    }
    // A new object each time: views notice a change by that.
    const task: LiveTask = known
      ? { ...known }
      : { taskId, queueId: data["queueId"] ?? "", workflowId: data["workflowId"] ?? "", title: "", state: "created", attempt: 1, roles: (event.data["roles"] as string[] | undefined) ?? [], agentId: "", leaseExpiresAt: "", since: timestamp, percent: undefined };
    if (!known && type !== "task.created") this.#want(taskId);
    const attempt = Number(event.data["attempt"] ?? task.attempt);
    // What another attempt did is over.
    if (attempt >= task.attempt) this.#change(task, event, data, attempt);
    this.tasks.set(task);
    if (ENDED.has(task.state) && task.state !== known?.state) this.#end(task);
  }

  #change(task: LiveTask, event: types.Event, data: Record<string, string | undefined>, attempt: number): void {
    const { type, timestamp } = event;
    task.attempt = attempt;
    if (data["leaseExpiresAt"]) task.leaseExpiresAt = data["leaseExpiresAt"];
    if (type === "task.claimed") task.agentId = data["agentId"] ?? "";
    if (type === "task.progress") task.percent = Number(event.data["percent"] ?? 0);
    const state = STATES[type];
    if (!state) return;
    if (state === "available") [task.agentId, task.leaseExpiresAt, task.percent] = ["", "", undefined];
    if (state !== task.state) [task.state, task.since] = [state, timestamp];
  }

  /** Ended tasks leave, the oldest first. */
  #end(task: LiveTask): void {
    this.#leave(task.taskId);
  }

  #paceOf(queueId: string, timestamp: string): Pace {
    const minute = Math.floor(Date.parse(timestamp) / 60_000);
    let minutes = this.#pace.get(queueId);
    if (!minutes) this.#pace.set(queueId, (minutes = new Map()));
    let pace = minutes.get(minute);
    if (!pace) minutes.set(minute, (pace = { done: 0, won: 0, missed: 0 }));
    for (const old of minutes.keys()) if (old <= minute - PACE_MINUTES) minutes.delete(old);
    return pace;
  }

  /** Count what happened in the last minutes before the page was opened. The stream brings what is after `head`. */
  async #readPaces(head: number): Promise<void> {
    const from = new Date(clock.now - PACE_MINUTES * 60_000).toISOString();
    for (const queueId of [...this.queues.keys()].slice(0, MOST_PACES)) {
      for (const [type, what] of Object.entries(PACES)) {
        let count = 0;
        for await (const event of session.client.ledger.query({ queueId, type, from, order: "desc", limit: 500 })) {
          if (event.sequence <= head) this.#paceOf(queueId, event.timestamp)[what]++;
          if (++count >= MOST_PACE_EVENTS || this.#stop.signal.aborted) break;
        }
      }
      this.#showSoon();
    }
  }

  #leave(taskId: string): void {
    this.#ended.push(taskId);
    if (this.#ended.length <= KEPT_ENDED) return;
    const gone = this.#ended.shift() ?? "";
    const task = this.tasks.get(gone);
    if (task && !LIVE.includes(task.state as never)) this.tasks.delete(gone);
    this.#asked.delete(gone);
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
    await this.#read("queues");
    for (const queueId of this.queues.keys()) {
      await Promise.all([...LIVE, "failed"].map((state) => this.#readState(queueId, state)));
    }
    this.tasks.sort();
    // Lists do not show leases: read those of what is held now.
    const held = this.tasks.inState(["claimed", "working"], { most: 200 });
    await Promise.all(held.map((task) => this.#readTask(task.taskId)));
  }

  async #readState(queueId: string, state: string): Promise<void> {
    let count = 0;
    for await (const task of session.client.tasks.list(queueId, { state: state as never, limit: 500 })) {
      if (state === "failed" && ++count > MOST_FAILED) return;
      if (this.tasks.size >= MOST_TASKS && IDLE.has(state)) {
        this.truncated = true;
        return;
      }
      this.tasks.set(summary(task));
    }
  }

  async #readTask(taskId: string): Promise<void> {
    const task = await session.client.tasks.get(taskId);
    const known = this.tasks.get(taskId);
    const read = { ...summary(task), leaseExpiresAt: task.claim?.leaseExpiresAt ?? "" };
    // The stream may be ahead of this answer: what it said stays.
    this.tasks.set(known ? { ...read, ...moving(known, read) } : read);
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
    this.#showSoon();
  }

  /** Read titles that a view asked for, the newest wish first; what is no longer in sight is dropped. */
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
        if (!known) this.#leave(id);
        this.#showSoon();
        // In a stream of new tasks, titles would be read faster than a person can read them.
        await new Promise((resolve) => setTimeout(resolve, TITLE_MS));
      } catch (error) {
        if (session.endsWith(error)) break;
      }
    }
    this.#asking--;
  }
}

/** How many tasks were completed, and how many claims were won and missed. */
interface Pace {
  done: number;
  won: number;
  missed: number;
}

const NOTHING = { events: 0, done: 0, missed: 0 };

export function summary(task: types.TaskSummary): LiveTask {
  const { taskId, queueId, workflowId = "", title = "", state, attempt, agentId = "" } = task;
  const held = state === "claimed" || state === "working";
  return { taskId, queueId, workflowId, title, state, attempt, roles: task.requiredRoles, agentId: held ? agentId : "", leaseExpiresAt: "", since: task.updatedAt, percent: task.progress?.percent ?? undefined };
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
