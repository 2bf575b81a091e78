/** What `rk.worker` declares: a handler and how its tasks are got; and what a run counts. */
import type { Card } from "./enlist.js";
import { CallMisused } from "./errors.js";
import type { Hold } from "./hold.js";

export interface WorkerOptions {
  queue: string;
  handler: (ctx: Hold) => unknown;
  /** Roles that the agent must have; they are granted when the key may. */
  roles?: readonly string[];
  /** Who claims: an agent's id, a name (registered when it is new), or an Agent Card; else an agent for this run alone. */
  agent?: string | Card;
  /** How many tasks at once; 1 when not given. */
  concurrency?: number;
  /** 60 when not given. */
  leaseSeconds?: number;
  /** Asked before each claim: while it answers with seconds, the worker claims nothing. */
  pause?: () => number;
}

/** What became of the claims that a run made, and of those that it tried to make. */
export interface Tally {
  claimed: number;
  completed: number;
  failed: number;
  blocked: number;
  released: number;
  /** Cancelled by the owner of the task while it was held. */
  cancelled: number;
  /** Held, and lost before the end was told: their results changed nothing. */
  lost: number;
  /** Races that others won, and claims that were not allowed. */
  missed: number;
  rejected: number;
}

/** The options, once they are checked. */
export function declared(worker: WorkerOptions): WorkerOptions {
  const { concurrency = 1, leaseSeconds = 60 } = worker;
  if (!(concurrency >= 1)) throw new CallMisused("a worker has a concurrency of at least 1", "concurrency_invalid");
  if (!(leaseSeconds >= 5 && leaseSeconds <= 86_400)) {
    throw new CallMisused("a lease has 5 to 86400 seconds; heartbeats extend it", "invalid_lease");
  }
  return worker;
}

export function newTally(): Tally {
  const names = ["claimed", "completed", "failed", "blocked", "released", "cancelled", "lost", "missed", "rejected"];
  return Object.fromEntries(names.map((name) => [name, 0])) as unknown as Tally;
}
