/**
 * Workers: a function over the tasks of a queue.
 *
 *     rk.worker({ queue: "podcast", roles: ["researcher"], handler: async (ctx) => ({ facts: await find(ctx.input) }) });
 *     await rk.run();
 *
 * The worker claims, starts, heartbeats at a third of the lease, and tells the end: a return completes, `Fail`, `Block`
 * and `Release` do what they say, any other error fails the attempt. A stop lets handlers finish for a while, then gives
 * back what is still held.
 */
import { backOffSeconds, newKey, sleep } from "./calls.js";
import type { RedKey } from "./client.js";
import {
  AlreadyTerminal,
  CallMisused,
  ClientError,
  Conflict,
  isPassing,
  LeaseLost,
  NotFound,
  WorkInterrupted,
} from "./errors.js";
import { newTally, type Tally, type WorkerOptions } from "./declared.js";
import { enlist } from "./enlist.js";
import type { Claimed, ClaimNextOutcome, Hold } from "./hold.js";
import { now } from "./lease.js";
import {
  afterRefusal,
  Block,
  Done,
  Fail,
  Release,
  verdictOf,
  type ClaimNext,
  type Verdict,
} from "./verdicts.js";

interface Enlisted extends Required<Omit<WorkerOptions, "agent" | "roles">> {
  agentId: string;
  /** Whether the agent was registered for this run alone. */
  passing: boolean;
}

interface Won {
  claimed: Claimed;
  askedAt: number;
}

// How long a claim-next waits for a task. A stop waits for it too, because a claim that is cut off may have been won.
const WAIT_SECONDS = 3;
// An agent of which nothing is recorded for 180 seconds is taken for lost.
const PRESENCE_SECONDS = 60;
const REJECTED_PAUSE_SECONDS = 5;
const REASON_LIMIT = 8000;
// For what is polite and not vital: a server that does not answer must not hold up a stop.
const BRIEF = { timeoutSeconds: 5, maxRetries: 1 };

type Runtime = { on(name: string, listener: () => void): void; off(name: string, listener: () => void): void };

/** One run of workers. */
export class Crew {
  readonly #tally = newTally();
  readonly #stopping = new AbortController();
  readonly #hurry = new AbortController();
  readonly #holds = new Set<Hold>();
  #error: { cause: unknown } | undefined;

  constructor(
    readonly rk: RedKey,
    readonly workers: readonly WorkerOptions[],
    readonly graceSeconds: number,
  ) {
    if (!workers.length)
      throw new CallMisused("no worker is declared: call rk.worker({ queue, handler })", "no_worker");
  }

  stop(atOnce: boolean): void {
    if (atOnce) this.#hurry.abort();
    this.#stopping.abort();
  }

  /** Work until a stop; the error that ended the run, if one did. */
  async run(signal?: AbortSignal): Promise<Tally> {
    const halt = () => this.stop(false);
    // The first signal lets handlers finish, the next does not.
    const heard = () => this.stop(this.#stopping.signal.aborted);
    const runtime = (globalThis as { process?: Partial<Runtime> }).process;
    for (const name of ["SIGTERM", "SIGINT"]) runtime?.on?.(name, heard);
    signal?.addEventListener("abort", halt);
    if (signal?.aborted) halt();
    const enlisted: Enlisted[] = [];
    const slots: Array<Promise<void>> = [];
    try {
      for (const { roles = [], agent, ...options } of this.workers) {
        const agentId = await enlist(this.rk, { agent, roles, queue: options.queue });
        const worker = {
          concurrency: 1,
          leaseSeconds: 60,
          pause: () => 0,
          ...options,
          agentId,
          passing: agent === undefined,
        };
        enlisted.push(worker);
        for (let slot = 0; slot < worker.concurrency; slot++) slots.push(this.#slot(worker));
      }
      while (!this.#stopping.signal.aborted) {
        await this.#showPresence(enlisted);
        await this.#nap(PRESENCE_SECONDS);
      }
    } finally {
      this.#stopping.abort();
      await this.#end(enlisted, slots);
      signal?.removeEventListener("abort", halt);
      for (const name of ["SIGTERM", "SIGINT"]) runtime?.off?.(name, heard);
    }
    if (this.#error) throw this.#error.cause;
    return this.#tally;
  }

  /** Work on one task at a time. What is refused for good ends the run; what passes is waited out. */
  async #slot(worker: Enlisted): Promise<void> {
    let won: Won | undefined;
    let asked: { key: string; at: number } | undefined;
    let failures = 0;
    try {
      while (!this.#stopping.signal.aborted) {
        if (won) {
          won = await this.#work(worker, won);
          continue;
        }
        const pause: number = asked ? 0 : worker.pause();
        if (pause > 0) {
          await this.#nap(Math.min(pause, 1));
          continue;
        }
        // A claim that was asked for and not answered may have been won: it is asked for under its key to its end.
        asked ??= { key: newKey(), at: now() };
        try {
          won = await this.#claim(worker, asked.key, asked.at);
          [failures, asked] = [0, undefined];
        } catch (error) {
          if (!isPassing(error)) throw error;
          this.rk.log(`no claim for now: ${String(error)}`);
          await this.#nap(backOffSeconds(++failures));
        }
      }
      if (won) await this.#giveBack(this.rk.held(won.claimed, worker.leaseSeconds, won.askedAt));
    } catch (cause) {
      this.#error ??= { cause };
      this.#stopping.abort();
    }
  }

  async #claim(
    { queue, agentId, leaseSeconds }: Enlisted,
    idempotencyKey: string,
    askedAt: number,
  ): Promise<Won | undefined> {
    // The hold may have begun as early as the request was sent: most of the lease must be left when it is answered.
    const wait = Math.min(WAIT_SECONDS, leaseSeconds / 3);
    const found = await this.rk.queues.claimNext(queue, { agentId, leaseSeconds, wait }, { idempotencyKey });
    if (found.status === "claimed") return { claimed: found, askedAt };
    if (found.status !== "no_tasks") {
      this.#tally[found.status]++;
      this.rk.log(`${agentId} may not claim from ${queue}: ${found.reason}`);
      await this.#nap(REJECTED_PAUSE_SECONDS);
    }
    return undefined;
  }

  /** Start, handle, tell the end: the claim that came with the telling. */
  async #work(worker: Enlisted, { claimed, askedAt }: Won): Promise<Won | undefined> {
    const hold = this.rk.held(claimed, worker.leaseSeconds, askedAt, this.#stopping.signal);
    this.#tally.claimed++;
    this.#holds.add(hold);
    try {
      await this.rk.keep(hold);
      const verdict = (await this.#start(hold)) ? await this.#judge(worker, hold) : undefined;
      if (!verdict || hold.told) return undefined;
      const goOn = !this.#stopping.signal.aborted && worker.pause() <= 0;
      const following = goOn ? { queueId: worker.queue, leaseSeconds: worker.leaseSeconds } : null;
      const toldAt = now();
      const next = await this.#report(hold, verdict, following);
      // Others may have it first; a handler that always gives back must not spin.
      if (verdict instanceof Release) await this.#nap(1);
      return next?.status === "claimed" ? { claimed: next, askedAt: toldAt } : undefined;
    } finally {
      this.rk.pulse.delete(hold);
      this.#holds.delete(hold);
    }
  }

  async #start(hold: Hold): Promise<boolean> {
    try {
      await hold.start();
    } catch (error) {
      if (error instanceof LeaseLost) {
        await hold.drop();
        this.#dropped(hold);
        return false;
      }
      this.rk.log(`${hold.task.taskId} could not be started: ${String(error)}`);
      // Another process that acts as the same agent was told of the same claim, and has begun.
      if (error instanceof Conflict || error instanceof NotFound) return false;
    }
    return true;
  }

  /** What the handler's end means; undefined when the hold has ended before. */
  async #judge(worker: Enlisted, hold: Hold): Promise<Verdict | undefined> {
    let verdict: Verdict;
    try {
      const given = await worker.handler(hold);
      const done = given instanceof Done ? given : new Done(given);
      verdict = new Done(await hold.fill(done.output), done.said);
    } catch (raised) {
      // It may well speak of this very claim; the server knows.
      if (raised instanceof Conflict && !hold.lease.end) await hold.beat();
      // Time alone said that it is lost: to give it back is right whether it is or not.
      verdict = raised instanceof WorkInterrupted ? new Release() : verdictOf(raised);
    }
    if (!hold.lease.end) return verdict;
    this.#dropped(hold);
    return undefined;
  }

  async #report(
    hold: Hold,
    verdict: Verdict,
    claimNext: ClaimNext | null,
  ): Promise<ClaimNextOutcome | null | undefined> {
    try {
      if (verdict instanceof Done) {
        const ended = await hold.complete({ output: verdict.output, ...verdict.said, claimNext });
        this.#tally.completed++;
        return ended.next;
      }
      if (verdict instanceof Fail) {
        const reason = verdict.reason.slice(0, REASON_LIMIT) || "The handler gave no reason.";
        const ended = await hold.fail(reason, verdict.kind, claimNext);
        this.#tally.failed++;
        return ended.next;
      }
      if (verdict instanceof Block) {
        await hold.block(verdict.reason.slice(0, REASON_LIMIT), verdict.blockerType, verdict.said);
        this.#tally.blocked++;
      } else {
        await hold.release();
        this.#tally.released++;
      }
    } catch (error) {
      if (!(error instanceof ClientError)) throw error;
      if (
        error instanceof LeaseLost ||
        error instanceof AlreadyTerminal ||
        error instanceof NotFound ||
        isPassing(error)
      ) {
        this.#dropped(hold);
        return undefined;
      }
      this.rk.log(`the end of ${hold.task.taskId} was refused: ${error.message}`);
      const other = afterRefusal(error, verdict);
      if (other) return this.#report(hold, other, claimNext);
    }
    return undefined;
  }

  #dropped(hold: Hold): void {
    const { end } = hold.lease;
    if (end === "stopped") return;
    this.#tally[end === "cancelled" ? "cancelled" : "lost"]++;
    this.rk.log(`${hold.task.taskId} was ${end === "cancelled" ? "cancelled" : "lost"} (claim ${hold.claimId})`);
  }

  async #giveBack(hold: Hold): Promise<void> {
    try {
      if (await hold.giveBack(BRIEF)) this.#tally.released++;
    } catch (error) {
      this.rk.log(`${hold.task.taskId} is left to its lease: ${String(error)}`);
    }
  }

  /** Tell of each agent that it lives, and how much work it can take and has; workers may share one. */
  async #showPresence(enlisted: readonly Enlisted[]): Promise<void> {
    for (const agentId of new Set(enlisted.map((worker) => worker.agentId))) {
      const capacity = enlisted.reduce((sum, one) => sum + (one.agentId === agentId ? one.concurrency : 0), 0);
      const inUse = [...this.#holds].filter((hold) => hold.agentId === agentId).length;
      await this.rk.agents.heartbeat(agentId, { capacity, inUse }, BRIEF).catch((error: unknown) => {
        this.rk.log(`${agentId} could not be shown as alive: ${String(error)}`);
      });
    }
  }

  /** Let slots finish, give back what is still held, and leave nothing open. */
  async #end(enlisted: readonly Enlisted[], slots: ReadonlyArray<Promise<void>>): Promise<void> {
    const begun = now();
    const over = new AbortController();
    const all = Promise.all(slots);
    const patience = (seconds: number, signal?: AbortSignal) => {
      const waiting = sleep(seconds, signal ? AbortSignal.any([signal, over.signal]) : over.signal).catch(
        () => undefined,
      );
      return Promise.race([all, waiting]);
    };
    await patience(this.graceSeconds, this.#hurry.signal);
    await Promise.all([...this.#holds].map((hold) => this.#giveBack(hold)));
    // A claim-next that waits may be about to win: it is heard to its end, and what it won is given back.
    await patience(Math.max(2, begun + WAIT_SECONDS + 1 - now()));
    over.abort();
    for (const { agentId, passing } of enlisted) {
      if (passing) {
        await this.rk.agents.deactivate(agentId, BRIEF).catch((error: unknown) => {
          this.rk.log(`${agentId} could not be deactivated: ${String(error)}`);
        });
      }
    }
  }

  /** Wait, or less when the run stops. */
  #nap(seconds: number): Promise<void> {
    return sleep(seconds, this.#stopping.signal).catch(() => undefined);
  }
}
