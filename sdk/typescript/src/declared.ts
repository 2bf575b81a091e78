/** The declaration of `rk.worker` (a handler, and how to claim its tasks), and the counters of a run. */
import type { Card } from "./enlist.js";
import { CallMisused } from "./errors.js";
import type { Hold } from "./hold.js";

export interface WorkerOptions {
  queue: string;
  handler: (ctx: Hold) => unknown;
  /** Roles that the agent must have; they are granted if the key is allowed to. */
  roles?: readonly string[];
  /** The claiming agent: an id, a name (registered if new), or an Agent Card; by default, one for this run only. */
  agent?: string | Card;
  /** How many tasks at once; 1 by default. */
  concurrency?: number;
  /** 60 by default. */
  leaseSeconds?: number;
  /** Called before each claim: while it returns seconds, the worker claims nothing. */
  pause?: () => number;
}

/** The outcomes of a run's claims and claim attempts. */
export interface Tally {
  claimed: number;
  completed: number;
  failed: number;
  blocked: number;
  released: number;
  /** The owner cancelled the task while it was held. */
  cancelled: number;
  /** The hold was lost before its verdict was accepted, so its results changed nothing. */
  lost: number;
  /** Lost races, and claims that were not allowed. */
  missed: number;
  rejected: number;
}

/** The options after validation. */
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
