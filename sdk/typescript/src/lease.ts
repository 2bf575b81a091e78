/**
 * The lease as its holder can know it, and the one timer that keeps all leases of a client.
 *
 * A heartbeat that fails proves nothing. What counts is when the last confirmed one was *sent*: the server cannot have
 * let the hold expire sooner than a lease after that.
 */
import { WorkInterrupted } from "./errors.js";

/** How a hold ended: by the server's word, or because the worker stops. */
export type End = "lease_lost" | "cancelled" | "stopped";

const SENTENCES: Record<End, string> = {
  lease_lost: "The claim no longer holds the task: another agent may have it. What is done now changes nothing.",
  cancelled: "The task was cancelled.",
  stopped: "The worker stops; the task was given back.",
};
// Heartbeats bring cancellations too, which should be known soon however long the lease is.
const LONGEST_BEAT_SECONDS = 30;
// How often the timer looks whether the machine slept or its clock was set.
const LOOK_SECONDS = 2;

/** Seconds of a clock that only goes forward, however the time of day is set. */
export function now(): number {
  return performance.now() / 1000;
}

export class Lease {
  /** How the hold ended; undefined while it may last. */
  end: End | undefined;
  readonly #controller = new AbortController();
  #expiresAt: string;
  #latest: number;
  #deadline: number;

  /** `askedAt` is when the claim was asked for, `expiresAt` the server's word for the end of the lease. */
  constructor(
    readonly seconds: number,
    askedAt: number,
    expiresAt: string,
  ) {
    this.#expiresAt = expiresAt;
    this.#latest = now() + seconds;
    this.#deadline = askedAt + seconds;
  }

  /** Aborts when the task may be out of these hands; its reason is a `WorkInterrupted`. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** How long the hold surely lasts from now on. */
  get leftSeconds(): number {
    return this.#deadline - now();
  }

  /** True when another agent may have the task: the hold has ended, or the server has not answered for too long. */
  get isLost(): boolean {
    return this.end !== undefined || this.leftSeconds <= 0;
  }

  /**
   * A heartbeat that was sent at this time was answered: held.
   *
   * The server extends when less than half of the lease is left, and else repeats the old end: so at least half of it
   * was left when the heartbeat was sent.
   */
  confirmed(askedAt: number, expiresAt: string): void {
    if (expiresAt === this.#expiresAt) {
      this.#deadline = Math.max(this.#deadline, Math.min(askedAt + this.seconds / 2, this.#latest));
    } else {
      this.#expiresAt = expiresAt;
      this.#latest = now() + this.seconds;
      this.#deadline = Math.max(this.#deadline, askedAt + this.seconds);
    }
  }

  /** The hold has ended; the first word stands. */
  finish(end: End): void {
    this.end ??= end;
    this.interrupt();
  }

  /** Tell the handler to stop. */
  interrupt(): void {
    this.#controller.abort(this.reason());
  }

  reason(): WorkInterrupted {
    const end = this.end ?? "lease_lost";
    return new WorkInterrupted(SENTENCES[end], end);
  }
}

/** What the timer keeps: a lease, and how a heartbeat for it is sent. */
export interface Held {
  readonly lease: Lease;
  /** Send a heartbeat; whether it was answered. */
  beat(): Promise<boolean>;
}

/** Heartbeats for all holds of a client, at a third of each lease from the time of sending, by one timer. */
export class Pulse {
  /** When the next heartbeat of each hold is due; Infinity while one is on its way. */
  readonly #due = new Map<Held, number>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #drift = 0;

  add(held: Held): void {
    if (this.#due.size === 0) this.#drift = drift();
    // A claim that was waited for may have little left of what is sure.
    this.#due.set(held, now() + Math.min(every(held), Math.max(0, held.lease.leftSeconds / 2)));
    this.#arm();
  }

  delete(held: Held): void {
    this.#due.delete(held);
    this.#arm();
  }

  #arm(): void {
    clearTimeout(this.#timer);
    if (this.#due.size === 0) return;
    const ends = [...this.#due.keys()].map((held) => now() + held.lease.leftSeconds).filter((end) => end > now());
    const seconds = Math.min(...this.#due.values(), ...ends, now() + LOOK_SECONDS) - now();
    this.#timer = setTimeout(() => this.#tick(), Math.max(0, seconds) * 1000);
  }

  #tick(): void {
    // A machine that slept, or whose clock was set: ask the server at once what is still held.
    const jumped = Math.abs(drift() - this.#drift) > LOOK_SECONDS;
    this.#drift = drift();
    for (const [held, due] of this.#due) {
      if (held.lease.leftSeconds <= 0) held.lease.interrupt();
      if (due <= now() || (jumped && due !== Infinity)) void this.#beat(held);
    }
    this.#arm();
  }

  async #beat(held: Held): Promise<void> {
    const sentAt = now();
    this.#due.set(held, Infinity);
    const answered = await held.beat();
    if (!this.#due.has(held)) return;
    if (held.lease.end) this.#due.delete(held);
    else this.#due.set(held, answered ? sentAt + every(held) : now() + soon(held));
    this.#arm();
  }
}

function every(held: Held): number {
  return Math.min(held.lease.seconds / 3, LONGEST_BEAT_SECONDS);
}

/** Soon, and not together with all others whose heartbeat failed. */
function soon(held: Held): number {
  return Math.min(held.lease.seconds / 10, 2) * (0.5 + Math.random() / 2);
}

/** How far the time of day is from the clock that only goes forward. */
function drift(): number {
  return Date.now() / 1000 - now();
}
