/**
 * The claims that the agents of this gateway hold.
 *
 * A model claims in one tool call and completes in another, minutes later: the SDK sends the heartbeats in between. If
 * a call names a claim that is no longer held (after a restart of the gateway, or a long idle time), the plugin claims
 * the task again, unless another agent has claimed it.
 */
import type { CallOptions, Hold } from "redkey";
import type { Identity, Log } from "./identities.js";
import { ToolProblem } from "./problems.js";

export interface Kept {
  owner: string;
  hold: Hold;
  /** By call: the rest of its output after the named outputs are recorded. */
  outputs: Map<string, unknown>;
  /** By call: its answer, so that repeating the call returns the same one. */
  answers: Map<string, Promise<unknown>>;
}

// How many claims are remembered; claims that have ended are forgotten first.
const REMEMBERED = 200;
const BRIEF = { timeoutSeconds: 3, maxRetries: 0 };

export class Holds {
  readonly #kept = new Map<string, Kept>();
  #stopped = false;

  constructor(
    readonly leaseSeconds: number,
    readonly log: Log,
  ) {}

  /** Keep a claim and report the start of work; release a claim that was won while the gateway is stopping. */
  async add(owner: string, hold: Hold): Promise<void> {
    if (this.#stopped) {
      await hold.release(BRIEF);
      throw new ToolProblem("This gateway is stopping and has released the task. Call again after the restart.");
    }
    this.#kept.set(hold.claimId, { owner, hold, outputs: new Map(), answers: new Map() });
    hold.signal.addEventListener("abort", () => {
      if (!hold.told && hold.lease.end !== "stopped")
        this.log.warn(`${owner}: ${(hold.signal.reason as Error).message} (${hold.claimId})`);
    });
    for (const [claimId, { hold: other }] of this.#kept) {
      if (this.#kept.size <= REMEMBERED) break;
      if (hasEnded(other)) this.#kept.delete(claimId);
    }
    // The claim is held even if its start could not be recorded.
    await hold.start().catch((error: unknown) => this.log.warn(`${hold.claimId}: ${String(error)}`));
  }

  /** Return the claims that an agent holds now. */
  of(owner: string): Hold[] {
    // A task that was claimed again has two claim ids.
    const kept = new Set(this.#kept.values());
    return [...kept].filter((one) => one.owner === owner && !hasEnded(one.hold)).map((one) => one.hold);
  }

  /** Return the answer of the call that ended a claim, for a repetition of that call. */
  answered(owner: string, key: string): Promise<unknown> | undefined {
    const kept = [...this.#kept.values()].filter((one) => one.owner === owner && one.answers.has(key));
    return kept.at(-1)?.answers.get(key);
  }

  /** Find the claim for a call: the named one, or the only one that the agent holds. */
  async find(identity: Identity, claimId: string | undefined, options: CallOptions): Promise<Kept> {
    const held = this.of(identity.name);
    const named = claimId ?? (held.length === 1 ? held[0]?.claimId : undefined);
    if (named === undefined) {
      const known = held.map((hold) => `${hold.claimId} (${hold.task.title ?? hold.task.taskId})`).join(", ");
      throw new ToolProblem(
        known
          ? `You hold several tasks: name one by its claimId: ${known}.`
          : "You hold no task. Call redkey_claim_next, or name the claimId of a task that you claimed.",
      );
    }
    const kept = this.#kept.get(named);
    if (kept && kept.owner !== identity.name) {
      throw new ToolProblem(`${named} is held by the agent ${kept.owner} of this gateway, not by you.`);
    }
    if (kept && (kept.hold.told || !hasEnded(kept.hold))) return kept;
    return this.#takeUp(identity, named, kept?.hold.task.taskId, options);
  }

  /** Claim a task again that this agent held: it continues, unless another agent has the task by now. */
  async #takeUp(identity: Identity, claimId: string, known: string | undefined, options: CallOptions): Promise<Kept> {
    const taskId = known ?? (await this.#taskOf(identity, claimId, options));
    const { agentId } = identity;
    const found = await identity.rk.holdTask(taskId, { agentId, leaseSeconds: this.leaseSeconds }, options);
    if (found.status !== "claimed") {
      throw new ToolProblem(
        `The claim ${claimId} has ended, and the task ${taskId} cannot be claimed again (${found.reason}). ` +
          "Your further work on it changes nothing. Call redkey_claim_next for other work.",
      );
    }
    await this.add(identity.name, found);
    const kept = this.#kept.get(found.claimId);
    if (!kept) throw new ToolProblem(`The claim ${claimId} has ended.`);
    // The id that the model knows.
    this.#kept.set(claimId, kept);
    return kept;
  }

  async #taskOf({ rk, agentId }: Identity, claimId: string, options: CallOptions): Promise<string> {
    const { items } = await rk.agents.claimHistory(agentId, { limit: 100 }, options).page();
    const found = items.find((item) => item.claimId === claimId && item.status === "claimed");
    if (found) return found.taskId;
    throw new ToolProblem(`You hold no claim ${claimId}. Call redkey_claim_next to get a task.`);
  }

  /** Release everything, so that others need not wait for the leases. */
  async stop(): Promise<void> {
    this.#stopped = true;
    const held = new Set([...this.#kept.values()].map((kept) => kept.hold).filter((hold) => !hasEnded(hold)));
    await Promise.all(
      [...held].map(async (hold) => {
        try {
          if (await hold.giveBack(BRIEF)) this.log.info(`${hold.task.taskId} was released`);
        } catch (error) {
          this.log.warn(`${hold.task.taskId} is left to its lease: ${String(error)}`);
        }
      }),
    );
    this.#kept.clear();
  }
}

function hasEnded(hold: Hold): boolean {
  return hold.told || hold.lease.end !== undefined;
}
