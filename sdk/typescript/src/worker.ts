/**
 * Workers: a function over the tasks of a queue.
 *
 *     rk.worker({ queue: "podcast", roles: ["researcher"], handler: async (ctx) => ({ facts: await find(ctx.input) }) });
 *     await rk.run();
 *
 * The worker claims, starts, sends heartbeats at a third of the lease, and reports the end: a return completes the
 * task, `Fail`, `Block` and `Release` do what they say, and any other error fails the attempt. After a stop, handlers
 * have some time to finish; then their claims are released.
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
import { actAs, enlist, type Acting } from "./enlist.js";
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
  /** The agent's readable name. */
  slug: string;
  /** Whether the agent was registered for this run only. */
  passing: boolean;
  /** The client with the agent's own key. */
  acting: Acting;
}

interface Won {
  claimed: Claimed;
  askedAt: number;
}

// The longest wait of a claim-next. A stop waits for it too, because an interrupted claim may have been won.
const WAIT_SECONDS = 3;
// The server marks an agent as lost after 180 seconds without a recorded heartbeat.
const PRESENCE_SECONDS = 60;
const REJECTED_PAUSE_SECONDS = 5;
const REASON_LIMIT = 8000;
// For optional calls: a server that does not answer must not delay a stop.
const BRIEF = { timeoutSeconds: 15, maxRetries: 1 };

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
    readonly quiet = false,
  ) {
    if (!workers.length)
      throw new CallMisused("no worker is declared: call rk.worker({ queue, handler })", "no_worker");
  }

  stop(atOnce: boolean): void {
    if (atOnce) this.#hurry.abort();
    this.#stopping.abort();
  }

  /** Work until a stop; throw the error that ended the run, if any. */
  async run(signal?: AbortSignal): Promise<Tally> {
    const halt = () => this.stop(false);
    // The first signal lets handlers finish, the second does not.
    const heard = () => {
      const again = this.#stopping.signal.aborted;
      const { size } = this.#holds;
      const tasks = size === 1 ? "1 task" : `${size} tasks`;
      if (again) this.#say(`giving back ${tasks}`);
      else this.#say(size ? `finishing ${tasks}; the next signal gives ${size === 1 ? "it" : "them"} back` : "stopping");
      this.stop(again);
    };
    const runtime = (globalThis as { process?: Partial<Runtime> }).process;
    for (const name of ["SIGTERM", "SIGINT"]) runtime?.on?.(name, heard);
    signal?.addEventListener("abort", halt);
    if (signal?.aborted) halt();
    const enlisted: Enlisted[] = [];
    const slots: Array<Promise<void>> = [];
    try {
      for (const { roles = [], agent, ...options } of this.workers) {
        const agentId = await enlist(this.rk, { agent, roles, queue: options.queue });
        const { slug } = await this.rk.agents.get(agentId);
        const worker = {
          concurrency: 1,
          leaseSeconds: 60,
          pause: () => 0,
          ...options,
          agentId,
          slug,
          passing: agent === undefined,
          acting: await actAs(this.rk, agentId),
        };
        enlisted.push(worker);
        this.#say(`${slug} waiting on ${worker.queue}${roles.length ? ` (${roles.join(", ")})` : ""}`);
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

  /** Work on one task at a time. A permanent refusal ends the run; a temporary failure is retried. */
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
        // An unanswered claim may have been won, so repeat it under its key until it is answered.
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
      if (won) await this.#giveBack(worker.acting.rk.held(won.claimed, worker.leaseSeconds, won.askedAt));
    } catch (cause) {
      this.#error ??= { cause };
      this.#stopping.abort();
    }
  }

  async #claim(
    { queue, agentId, leaseSeconds, acting }: Enlisted,
    idempotencyKey: string,
    askedAt: number,
  ): Promise<Won | undefined> {
    // The lease may start when the request is sent: most of it must be left when the answer arrives.
    const wait = Math.min(WAIT_SECONDS, leaseSeconds / 3);
    const found = await acting.rk.queues.claimNext(queue, { agentId, leaseSeconds, wait }, { idempotencyKey });
    if (found.status === "claimed") return { claimed: found, askedAt };
    if (found.status !== "no_tasks") {
      this.#tally[found.status]++;
      this.rk.log(`${agentId} may not claim from ${queue}: ${found.reason}`);
      await this.#nap(REJECTED_PAUSE_SECONDS);
    }
    return undefined;
  }

  /** Start, run the handler and report the end; return the next claim that came with the reply. */
  async #work(worker: Enlisted, { claimed, askedAt }: Won): Promise<Won | undefined> {
    const { rk } = worker.acting;
    const hold = rk.held(claimed, worker.leaseSeconds, askedAt, this.#stopping.signal);
    this.#tally.claimed++;
    this.#holds.add(hold);
    const title = oneLine(hold.task.title ?? "") || hold.task.taskId;
    const say = (what: string, reason = "") => {
      const seconds = (now() - askedAt).toFixed(1);
      this.#say(`${worker.slug} ${what} ${title} after ${seconds} s${reason && `: ${oneLine(reason)}`}`);
    };
    this.#say(`${worker.slug} claimed ${title}`);
    try {
      await rk.keep(hold);
      const verdict = (await this.#start(hold)) ? await this.#judge(worker, hold) : undefined;
      if (!verdict || hold.told) return undefined;
      const goOn = !this.#stopping.signal.aborted && worker.pause() <= 0;
      const following = goOn ? { queueId: worker.queue, leaseSeconds: worker.leaseSeconds } : null;
      const toldAt = now();
      const next = await this.#report(hold, verdict, following, say);
      // Give other agents a chance first, so that a handler that always releases does not spin.
      if (verdict instanceof Release) await this.#nap(1);
      return next?.status === "claimed" ? { claimed: next, askedAt: toldAt } : undefined;
    } finally {
      rk.pulse.delete(hold);
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
      // Another process that acts as the same agent got the same claim and has started it.
      if (error instanceof Conflict || error instanceof NotFound) return false;
    }
    return true;
  }

  /** Turn the handler's result into a verdict; undefined if the hold has already ended. */
  async #judge(worker: Enlisted, hold: Hold): Promise<Verdict | undefined> {
    let verdict: Verdict;
    try {
      const given = await worker.handler(hold);
      const done = given instanceof Done ? given : new Done(given);
      verdict = new Done(await hold.fill(done.output), done.said);
    } catch (raised) {
      // The refusal may concern this very claim; ask the server.
      if (raised instanceof Conflict && !hold.lease.end) await hold.beat();
      // Only the lease time ran out: releasing is right whether the claim is lost or not.
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
    say: (what: string, reason?: string) => void,
  ): Promise<ClaimNextOutcome | null | undefined> {
    try {
      if (verdict instanceof Done) {
        const ended = await hold.complete({ output: verdict.output, ...verdict.said, claimNext });
        this.#tally.completed++;
        say("done");
        return ended.next;
      }
      if (verdict instanceof Fail) {
        const reason = verdict.reason.slice(0, REASON_LIMIT) || "The handler gave no reason.";
        const ended = await hold.fail(reason, verdict.kind, claimNext);
        this.#tally.failed++;
        say("failed", reason);
        return ended.next;
      }
      if (verdict instanceof Block) {
        await hold.block(verdict.reason.slice(0, REASON_LIMIT), verdict.blockerType, verdict.said);
        this.#tally.blocked++;
        say("blocked", verdict.reason);
      } else {
        await hold.release();
        this.#tally.released++;
        say("released");
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
      if (other) return this.#report(hold, other, claimNext, say);
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

  /** Send a heartbeat for each agent, with its capacity and load; workers may share an agent. */
  async #showPresence(enlisted: readonly Enlisted[]): Promise<void> {
    const acting = new Map(enlisted.map((worker) => [worker.agentId, worker.acting.rk]));
    for (const [agentId, rk] of acting) {
      const capacity = enlisted.reduce((sum, one) => sum + (one.agentId === agentId ? one.concurrency : 0), 0);
      const inUse = [...this.#holds].filter((hold) => hold.agentId === agentId).length;
      await rk.agents.heartbeat(agentId, { capacity, inUse }, BRIEF).catch((error: unknown) => {
        this.rk.log(`${agentId} could not be shown as alive: ${String(error)}`);
      });
    }
  }

  /** Let slots finish, release the claims that are left, and close everything. */
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
    // A waiting claim-next may be about to win: wait for its answer, and release what it won.
    await patience(Math.max(2, begun + WAIT_SECONDS + 1 - now()));
    over.abort();
    for (const { agentId, passing, acting } of enlisted) {
      try {
        if (passing) await this.rk.agents.deactivate(agentId, {}, BRIEF);
        await acting.end(BRIEF);
      } catch (error) {
        this.rk.log(`${agentId} could not be deactivated: ${String(error)}`);
      }
    }
  }

  /** Log a line about the work, unless the run is quiet. */
  #say(message: string): void {
    if (!this.quiet) this.rk.log(message);
  }

  /** Wait, at most until the run stops. */
  #nap(seconds: number): Promise<void> {
    return sleep(seconds, this.#stopping.signal).catch(() => undefined);
  }
}

/** Put foreign text on one line, without control characters that a terminal would obey. */
function oneLine(text: string): string {
  return text.replace(/\p{C}/gu, " ").slice(0, 200);
}
