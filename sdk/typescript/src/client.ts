/** The client: every operation of the API, workers, and claims that are kept without a worker. */
import { operation, type CallOptions, type Connection } from "./calls.js";
import { enlist, type Enlistment } from "./enlist.js";
import { declared, type Tally, type WorkerOptions } from "./declared.js";
import { CallMisused, ReplyRefused } from "./errors.js";
import type { Api } from "./generated/api.js";
import { OPERATIONS } from "./generated/operations.js";
import { Hold, type Claimed, type Missed, type NoTasks, type Rejected } from "./hold.js";
import { Lease, now, Pulse } from "./lease.js";
import { findSettings } from "./settings.js";
import { tasksOf, type Tasks } from "./tasks.js";
import { Crew } from "./worker.js";

export interface Settings extends Omit<CallOptions, "signal" | "idempotencyKey"> {
  /** `http://host:port` or `https://host`; by default `REDKEY_URL`, else the server that `redkey serve` runs here. */
  url?: string;
  /** An API key or an access token; by default `REDKEY_API_KEY`, or else the key that `redkey serve` wrote. */
  apiKey?: string;
  /** The data directory of a server on this machine; by default `REDKEY_DATA`, or else `.redkey`. */
  data?: string;
  /** Replaces the global `fetch`. */
  fetch?: typeof fetch;
  /** Receives the log lines of workers; `console.warn` by default. */
  log?: (message: string) => void;
}

export interface RedKey extends Omit<Api, "tasks"> {
  tasks: Tasks;
}

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
    // Browsers refuse to call a global function as a method of another object.
    this.#connection = { ...found, fetch: send ?? ((...args) => fetch(...args)), options };
    for (const [family, lines] of Object.entries(OPERATIONS)) {
      const calls = Object.entries(lines).map(([name, line]) => [name, operation(this.#connection, line)]);
      Object.assign(this, { [family]: Object.fromEntries(calls) });
    }
    this.tasks = tasksOf(this, this.tasks);
  }

  /** Return a client with other options over the same connection. */
  withOptions(options: CallOptions): RedKey {
    const { url, apiKey, fetch: send, options: before } = this.#connection;
    return new RedKey({ ...before, ...options, url, apiKey, fetch: send, log: this.log } as Settings);
  }

  /** Return a client with another key. @internal */
  withKey(apiKey: string): RedKey {
    const { url, fetch: send, options } = this.#connection;
    return new RedKey({ ...options, url, apiKey, fetch: send, log: this.log } as Settings);
  }

  /** Declare a handler for the tasks of a queue; `run` starts the work. */
  worker(worker: WorkerOptions): void {
    this.#workers.push(declared(worker));
  }

  /**
   * Work until SIGTERM, SIGINT, `stop` or the signal; return the tally of the tasks. Claims and their ends are logged
   * to `log`, unless the run is `quiet`; problems are always logged.
   */
  async run(options: { graceSeconds?: number; signal?: AbortSignal; quiet?: boolean } = {}): Promise<Tally> {
    if (this.#crew) throw new CallMisused("the workers of this client are running", "running");
    const crew = new Crew(this, this.#workers, options.graceSeconds ?? 10, options.quiet);
    this.#crew = crew;
    try {
      return await crew.run(options.signal);
    } finally {
      this.#crew = undefined;
    }
  }

  /** End `run`: handlers may finish, or their claims are released at once. */
  stop(options: { atOnce?: boolean } = {}): void {
    this.#crew?.stop(options.atOnce ?? false);
  }

  /** Find or register an agent, grant its roles, and create its queue if it is missing; return the agent's id. */
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
    // The answer came so late that the lease may be over: ask the server.
    if (hold.leaseLost) await hold.beat();
    if (!hold.lease.end) this.pulse.add(hold);
  }

  /** Return a won claim as a hold, without heartbeats yet. @internal */
  held(claimed: Claimed, leaseSeconds: number, askedAt: number, stopping = new AbortController().signal): Hold {
    if (!claimed.task || !claimed.claimId) throw new ReplyRefused("a claim came without its task");
    return new Hold(this, claimed.task, claimed, new Lease(leaseSeconds, askedAt, claimed.leaseExpiresAt), stopping);
  }
}
