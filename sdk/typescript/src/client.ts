/** The client: every operation of the API, workers, and claims that are held without a worker. */
import { operation, type CallOptions, type Connection } from "./calls.js";
import { enlist, type Enlistment } from "./enlist.js";
import { declared, type Tally, type WorkerOptions } from "./declared.js";
import { CallMisused, ReplyRefused } from "./errors.js";
import type { Api } from "./generated/api.js";
import { OPERATIONS } from "./generated/operations.js";
import { Hold, type Claimed, type Missed, type NoTasks, type Rejected } from "./hold.js";
import { Lease, now, Pulse } from "./lease.js";
import { findSettings } from "./settings.js";
import { Crew } from "./worker.js";

export interface Settings extends Omit<CallOptions, "signal" | "idempotencyKey"> {
  /** `http://host:port` or `https://host`; else `REDKEY_URL`, else the server that `redkey serve` runs here. */
  url?: string;
  /** An API key or an access token; else `REDKEY_API_KEY`, else the key that `redkey serve` wrote. */
  apiKey?: string;
  /** The data directory of a server on this machine; else `REDKEY_DATA`, else `.redkey`. */
  data?: string;
  /** In place of the global `fetch`. */
  fetch?: typeof fetch;
  /** Takes what workers report; `console.warn` when not given. */
  log?: (message: string) => void;
}

type Task = Awaited<ReturnType<Api["tasks"]["get"]>>;

/** What the SDK adds to the operations of tasks. */
interface Waiting {
  /** Wait until a task is completed, failed for good or cancelled. `gateId` names an approval that it still needs. */
  wait(taskId: string, options?: CallOptions): Promise<Task>;
}

export interface RedKey extends Omit<Api, "tasks"> {
  tasks: Api["tasks"] & Waiting;
}

const ENDED = ["completed", "failed", "cancelled"];

export class RedKey {
  readonly url: string;
  readonly log: (message: string) => void;
  /** The timer of all holds of this client. @internal */
  readonly pulse: Pulse;
  readonly #connection: Connection;
  readonly #workers: WorkerOptions[] = [];
  #crew: Crew | undefined;

  constructor(settings: Settings = {}) {
    const { url, apiKey, data, fetch: send, log, ...options } = settings;
    const found = findSettings(url, apiKey, data);
    this.url = found.url;
    this.log = log ?? ((message) => console.warn(`redkey: ${message}`));
    this.pulse = new Pulse();
    // A global function does not like to be called as the method of something else.
    this.#connection = { ...found, fetch: send ?? ((...args) => fetch(...args)), options };
    for (const [family, lines] of Object.entries(OPERATIONS)) {
      const calls = Object.entries(lines).map(([name, line]) => [name, operation(this.#connection, line)]);
      Object.assign(this, { [family]: Object.fromEntries(calls) });
    }
    this.tasks.wait = (taskId, waiting) => this.#wait(taskId, waiting);
  }

  /** The same client with other options for the calls that are made through it. */
  withOptions(options: CallOptions): RedKey {
    const { url, apiKey, fetch: send, options: before } = this.#connection;
    return new RedKey({ ...before, ...options, url, apiKey, fetch: send, log: this.log } as Settings);
  }

  /** Declare a handler for the tasks of a queue; `run` begins the work. */
  worker(worker: WorkerOptions): void {
    this.#workers.push(declared(worker));
  }

  /** Work until SIGTERM, SIGINT, `stop` or the signal: what became of the tasks. */
  async run(options: { graceSeconds?: number; signal?: AbortSignal } = {}): Promise<Tally> {
    if (this.#crew) throw new CallMisused("the workers of this client are running", "running");
    const crew = new Crew(this, this.#workers, options.graceSeconds ?? 10);
    this.#crew = crew;
    try {
      return await crew.run(options.signal);
    } finally {
      this.#crew = undefined;
    }
  }

  /** End `run`: handlers may finish, or what they hold is given back at once. */
  stop(options: { atOnce?: boolean } = {}): void {
    this.#crew?.stop(options.atOnce ?? false);
  }

  /** Find or register an agent, grant it its roles, and create its queue when it is missing: the agent's id. */
  enlist(enlistment: Enlistment): Promise<string> {
    return enlist(this, enlistment);
  }

  /** Claim the next task of a queue and keep it alive until it is completed, failed, blocked or released. */
  hold(
    queue: string,
    claim: { agentId: string; leaseSeconds?: number; wait?: number },
    options?: CallOptions,
  ): Promise<Hold | Missed | Rejected | NoTasks> {
    return this.#hold(claim.leaseSeconds, (lease) => this.queues.claimNext(queue, { ...claim, ...lease }, options));
  }

  /** Claim one task by its id, and keep it alive like `hold`. */
  holdTask(
    taskId: string,
    claim: { agentId: string; leaseSeconds?: number },
    options?: CallOptions,
  ): Promise<Hold | Missed | Rejected> {
    const asked = { ...claim, withTask: true };
    return this.#hold(claim.leaseSeconds, (lease) => this.tasks.claim(taskId, { ...asked, ...lease }, options));
  }

  async #hold<Other extends Missed | Rejected | NoTasks>(
    leaseSeconds = 60,
    ask: (lease: { leaseSeconds: number }) => Promise<Claimed | Other>,
  ): Promise<Hold | Other> {
    const askedAt = now();
    const found = await ask({ leaseSeconds });
    if (found.status !== "claimed") return found;
    const hold = this.held(found, leaseSeconds, askedAt);
    hold.touch();
    await this.keep(hold);
    return hold;
  }

  /** Keep a hold alive by heartbeats. @internal */
  async keep(hold: Hold): Promise<void> {
    // The answer came so late that the lease may be over: the server knows.
    if (hold.leaseLost) await hold.beat();
    if (!hold.lease.end) this.pulse.add(hold);
  }

  /** A claim that was won as a hold, without heartbeats yet. @internal */
  held(claimed: Claimed, leaseSeconds: number, askedAt: number, stopping = new AbortController().signal): Hold {
    if (!claimed.task || !claimed.claimId) throw new ReplyRefused("a claim came without its task");
    return new Hold(this, claimed.task, claimed, new Lease(leaseSeconds, askedAt, claimed.leaseExpiresAt), stopping);
  }

  async #wait(taskId: string, options: CallOptions = {}): Promise<Task> {
    // Where the ledger is now, so that nothing falls between the look at the task and the stream.
    const head = (await this.ledger.query({ order: "desc", limit: 1 }, options).page()).items[0]?.sequence ?? 0;
    let task = await this.tasks.get(taskId, {}, options);
    if (ENDED.includes(task.state)) return task;
    const types = ["task.complete", "task.failed", "task.cancelled"];
    for await (const event of this.events.follow({ types, queueId: task.queueId, after: head }, options)) {
      if (event.subject.id !== taskId) continue;
      task = await this.tasks.get(taskId, {}, options);
      if (ENDED.includes(task.state)) break;
    }
    return task;
  }
}
