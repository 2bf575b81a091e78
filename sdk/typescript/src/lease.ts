/**
 * The lease as its holder knows it, and the one timer that keeps all leases of a client.
 *
 * A failed heartbeat proves nothing. What counts is when the last confirmed heartbeat was *sent*: the server cannot
 * have let the hold expire earlier than one lease after that.
 */
import { WorkInterrupted } from "./errors.js";

/** How a hold ended: as reported by the server, or because the worker stops. */
export type End = "lease_lost" | "cancelled" | "stopped";

const SENTENCES: Record<End, string> = {
  lease_lost: "The claim no longer holds the task: another agent may have it. What is done now changes nothing.",
  cancelled: "The task was cancelled.",
  stopped: "The worker is stopping and has released the task.",
};
// Heartbeats also report cancellations, so even a long lease has a heartbeat this often.
const LONGEST_BEAT_SECONDS = 30;
// How often the timer checks whether the machine slept or its clock was set.
const LOOK_SECONDS = 2;

/** Return the seconds of a monotonic clock. */
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

  /** `askedAt` is the time of the claim's request, `expiresAt` the lease end that the server sent. */
  constructor(
    readonly seconds: number,
    askedAt: number,
    expiresAt: string,
  ) {
    this.#expiresAt = expiresAt;
    this.#latest = now() + seconds;
    this.#deadline = askedAt + seconds;
  }

  /** Aborts when another agent may have the task; its reason is a `WorkInterrupted`. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Return the seconds for which the hold certainly lasts. */
  get leftSeconds(): number {
    return this.#deadline - now();
  }

  /** True when another agent may have the task: the hold has ended, or the server has not answered for too long. */
  get isLost(): boolean {
    return this.end !== undefined || this.leftSeconds <= 0;
  }

  /**
   * A heartbeat that was sent at this time was confirmed.
   *
   * The server extends the lease if less than half of it is left, otherwise it repeats the old end. So at least half
   * of the lease was left when the heartbeat was sent.
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

  /** Record how the hold ended; only the first call counts. */
  finish(end: End): void {
    this.end ??= end;
    this.interrupt();
  }

  /** Interrupt the handler. */
  interrupt(): void {
    this.#controller.abort(this.reason());
  }

  reason(): WorkInterrupted {
    const end = this.end ?? "lease_lost";
    return new WorkInterrupted(SENTENCES[end], end);
  }
}

/** An entry of the timer: a lease, and how to send a heartbeat for it. */
export interface Held {
  readonly lease: Lease;
  /** Send a heartbeat; return whether it was answered. */
  beat(): Promise<boolean>;
}

/** Sends heartbeats for all holds of a client, at a third of each lease after the last sending, with one timer. */
export class Pulse {
  /** When the next heartbeat of each hold is due; Infinity while one is being sent. */
  readonly #due = new Map<Held, number>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #drift = 0;

  add(held: Held): void {
    if (this.#due.size === 0) this.#drift = drift();
    // If the claim was waited for, little of its certain time may be left.
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
    // The machine slept, or its clock was set: ask the server at once which claims are still held.
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

/** Return a short random pause, so that not all clients retry at the same time. */
function soon(held: Held): number {
  return Math.min(held.lease.seconds / 10, 2) * (0.5 + Math.random() / 2);
}

/** The difference between the time of day and the monotonic clock. */
function drift(): number {
  return Date.now() / 1000 - now();
}
