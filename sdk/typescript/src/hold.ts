/** One task in an agent's hands: the context of a worker's handler, and a claim that adapters keep without one. */
import { newKey, sleep, type CallOptions } from "./calls.js";
import type { RedKey } from "./client.js";
import { AlreadyTerminal, CallMisused, isPassing, LeaseLost, NotFound } from "./errors.js";
import type { Api } from "./generated/api.js";
import { now, type End, type Held, type Lease } from "./lease.js";
import { shareOut, type Blocker, type BlockerType, type Completion, type FailureKind } from "./verdicts.js";

export type ClaimNextOutcome = Awaited<ReturnType<Api["queues"]["claimNext"]>>;
export type ClaimOutcome = Awaited<ReturnType<Api["tasks"]["claim"]>>;
/** The claim was won. */
export type Claimed = Extract<ClaimNextOutcome, { status: "claimed" }>;
/** Another claim won. Do not try the same task again at once. */
export type Missed = Extract<ClaimNextOutcome, { status: "missed" }>;
/** The agent may not claim this. */
export type Rejected = Extract<ClaimNextOutcome, { status: "rejected" }>;
/** There is nothing that the agent may claim now. */
export type NoTasks = Extract<ClaimNextOutcome, { status: "no_tasks" }>;
/** The work that comes with a claim. */
export type Assignment = NonNullable<Claimed["task"]>;
type ArtifactFields = Omit<
  Parameters<Api["claims"]["addArtifact"]>[1],
  "name" | "content" | "contentBase64" | "sha256" | "bytes"
>;
type Upstream = NonNullable<Assignment["upstream"]>[number];

type Report = Parameters<Api["claims"]["reportProgress"]>[1];
type ProgressReported = Awaited<ReturnType<Api["claims"]["reportProgress"]>>;

// As long as the server takes it; longer texts are cut.
const PROGRESS_CHARACTERS = 2000;
// What is larger is put as content first; a request may have 1 MiB in all.
const INLINE_BYTES = 256 * 1024;

/**
 * A claim that was won, kept alive by heartbeats until it ends.
 *
 * `complete`, `fail`, `block` and `release` end it, once. When the server refuses one of them, the hold goes on and
 * another may be tried. `signal` aborts when the task may be out of these hands.
 */
export class Hold implements Held {
  readonly status = "claimed";
  readonly claimId: string;
  readonly agentId: string;
  /** The names of the artifacts that were made, ready ones only. */
  readonly made = new Set<string>();
  /** Whether the end was told to the server. */
  told = false;
  /** Whether the holder did nothing for so long that others may claim the task. */
  stalled = false;
  /** When the holder was last active; undefined under a handler, which is active while it runs. */
  #activeAt: number | undefined;
  #telling = false;
  #nextReportAt = 0;
  #waitingReport: Report | undefined;

  constructor(
    readonly rk: RedKey,
    readonly task: Assignment,
    claimed: Claimed,
    readonly lease: Lease,
    /** Aborts when the worker was asked to stop: finish soon, or throw `Release`. */
    readonly stopping: AbortSignal,
  ) {
    this.claimId = claimed.claimId;
    this.agentId = claimed.agentId;
  }

  /** The input of the task; of a plan's task without its own, what the run was given. */
  get input(): any {
    return this.task.input ?? this.task.workflowInput;
  }

  /** What lifted the task's last block; empty when it was not blocked, or was lifted without an answer. */
  get answer(): string {
    return this.task.answer ?? "";
  }

  /**
   * Count as active now. A hold without a handler that does nothing for the `idleSeconds` of its queue stalls: others
   * may claim the task, and the next act or `touch` takes it up again if none did.
   */
  touch(): void {
    this.#activeAt = now();
    if (this.stalled) void this.beat();
  }

  /** Aborts when the lease is lost or the task cancelled; its reason is a `WorkInterrupted`. */
  get signal(): AbortSignal {
    return this.lease.signal;
  }

  /** Whether the task may be out of these hands by now. */
  get leaseLost(): boolean {
    return this.lease.isLost;
  }

  get cancelled(): boolean {
    return this.lease.end === "cancelled";
  }

  /** Go on, or throw `WorkInterrupted`: call it where the work can be left. */
  check(): void {
    if (this.lease.isLost) throw this.lease.reason();
  }

  /** Record an output under a name: text, bytes, or anything that is JSON. */
  async artifact(name: string, content: unknown, fields: ArtifactFields = {}) {
    this.#act();
    const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
    const said: Parameters<Api["claims"]["addArtifact"]>[1] = { name, ...fields };
    if (typeof content === "string") said.mediaType ??= "text/plain";
    if (bytes instanceof Uint8Array && bytes.length > INLINE_BYTES) {
      said.sha256 = (await this.rk.content.put(bytes as Uint8Array<ArrayBuffer>)).sha256;
    } else if (content instanceof Uint8Array) {
      said.contentBase64 = base64(content);
    } else {
      said.content = content;
    }
    const added = await this.rk.claims.addArtifact(this.claimId, said);
    if (fields.readiness !== "draft") this.made.add(name);
    return added;
  }

  /** Record what was returned as the outputs that the task must have and that were not made: what is left of it. */
  async fill(returned: unknown): Promise<unknown> {
    const [named, rest] = shareOut(this.task.outputs ?? [], this.made, returned);
    for (const [name, content] of Object.entries(named)) await this.artifact(name, content);
    return rest;
  }

  /**
   * Say how far the work has come, for those who watch the task: a sentence, a percentage, or both.
   *
   * Call it as often as you like: one report a second is sent, and the newest always is. `recorded` is false for one
   * that waits for its second. What waits when the hold ends is dropped.
   */
  async progress(text = "", percent?: number, options?: CallOptions): Promise<ProgressReported> {
    this.#act();
    const cut = text.length <= PROGRESS_CHARACTERS ? text : text.slice(0, PROGRESS_CHARACTERS - 1) + "…";
    const report: Report = { text: cut, ...(percent === undefined ? {} : { percent: Math.round(percent) }) };
    const wait = this.#nextReportAt - now();
    if (wait > 0) {
      this.#keepReport(report, wait);
      const { taskId } = this.task;
      return { taskId, claimId: this.claimId, recorded: false, reason: "coalesced", retryAfterSeconds: wait };
    }
    return this.#report(report, options);
  }

  async #report(report: Report, options?: CallOptions): Promise<ProgressReported> {
    this.#nextReportAt = now() + 1;
    const said = await this.rk.claims.reportProgress(this.claimId, report, options);
    if (typeof said.retryAfterSeconds === "number") {
      this.#nextReportAt = now() + said.retryAfterSeconds;
      this.#keepReport(this.#waitingReport ?? report, said.retryAfterSeconds);
    }
    return said;
  }

  /** Keep the newest report until its second has come. */
  #keepReport(report: Report, seconds: number): void {
    const isNew = this.#waitingReport === undefined;
    this.#waitingReport = report;
    if (!isNew) return;
    const timer = setTimeout(() => {
      const waiting = this.#waitingReport;
      this.#waitingReport = undefined;
      if (!waiting || this.told || this.#telling || this.lease.end) return;
      this.#report(waiting).catch((error) => this.rk.log(`no progress for ${this.claimId} (${String(error)})`));
    }, seconds * 1000);
    // It keeps no process alive; browsers have numbers for timers.
    if (typeof timer === "object") (timer as { unref?: () => void }).unref?.();
  }

  /** The task as it is now. */
  view() {
    this.#act();
    return this.rk.tasks.get(this.task.taskId);
  }

  /** Record the plan that the work follows. */
  plan(plan: Parameters<Api["claims"]["plan"]>[1]["plan"]) {
    this.#act();
    return this.rk.claims.plan(this.claimId, { plan });
  }

  /** The bytes of an artifact that a task before this one made, by its name. */
  async read(name: string): Promise<Uint8Array<ArrayBuffer>> {
    this.#act();
    return this.rk.content.get(this.upstream(name).sha256);
  }

  /** What is known of an artifact that a task before this one made. */
  upstream(name: string): Upstream {
    const known = this.task.upstream ?? [];
    const found = known.find((one) => one.name === name);
    if (found) return found;
    const names = known.map((one) => one.name).join(", ") || "none";
    throw new CallMisused(`no task before this one made "${name}"; there is: ${names}`, "no_such_artifact");
  }

  /** Say that work has begun. */
  start() {
    this.#act();
    return this.rk.claims.start(this.claimId);
  }

  /** Say that the work is done. */
  complete(completion: Completion = {}, options: CallOptions = {}) {
    return this.#tell((keyed) => this.rk.claims.complete(this.claimId, completion, keyed), options);
  }

  /** Say that the attempt failed. */
  fail(
    reason: string,
    kind: FailureKind = "error",
    claimNext: Completion["claimNext"] = null,
    options: CallOptions = {},
  ) {
    return this.#tell((keyed) => this.rk.claims.fail(this.claimId, { reason, kind, claimNext }, keyed), options);
  }

  /** Say what stands in the way. */
  block(reason: string, blockerType: BlockerType = "ambiguity", said: Blocker = {}, options: CallOptions = {}) {
    return this.#tell((keyed) => this.rk.claims.block(this.claimId, { reason, blockerType, ...said }, keyed), options);
  }

  /** Give the task back for others. */
  release(options: CallOptions = {}) {
    return this.#tell((keyed) => this.rk.claims.release(this.claimId, keyed), options);
  }

  /** Give the task back before its handler ended, and interrupt the handler. */
  async giveBack(options: CallOptions): Promise<boolean> {
    if (this.told || this.#telling || this.lease.end) return false;
    try {
      await this.#tell((keyed) => this.rk.claims.release(this.claimId, keyed), options, true);
    } finally {
      this.#end("stopped");
    }
    return true;
  }

  /** Send a heartbeat; whether it was answered. */
  async beat(): Promise<boolean> {
    const askedAt = now();
    const activity = this.#activeAt === undefined ? {} : { idleSeconds: Math.floor(askedAt - this.#activeAt) };
    try {
      const timeoutSeconds = Math.min(Math.max(this.lease.seconds / 3, 1), 10);
      const heard = await this.rk.claims.heartbeat(this.claimId, activity, { timeoutSeconds, maxRetries: 0 });
      // What came after the end was told speaks of the end.
      if (this.told) return true;
      this.stalled = heard.state === "stalled";
      if (heard.state === "held") this.lease.confirmed(askedAt, heard.leaseExpiresAt ?? "");
      else if (!this.stalled) this.#end(heard.state === "cancelled" ? "cancelled" : "lease_lost");
    } catch (error) {
      if (error instanceof NotFound) {
        this.#end("lease_lost");
        return true;
      }
      const left = this.lease.leftSeconds;
      const said = left > 0 ? `the claim lasts ${left.toFixed(0)} s more without one` : "the claim may be lost by now";
      this.rk.log(`no heartbeat for ${this.claimId} (${String(error)}); ${said}`);
      return false;
    }
    return true;
  }

  /** A refusal said that the claim is gone. It is the same for a cancelled task; a heartbeat tells which it was. */
  async drop(): Promise<void> {
    if (!this.lease.end) await this.beat();
    this.#end("lease_lost");
  }

  /** Tell the end until the server has it, as long as the hold may last; under one key however often. */
  async #tell<Reply>(send: (keyed: CallOptions) => Promise<Reply>, options: CallOptions, once = false): Promise<Reply> {
    if (this.told || this.#telling) throw new CallMisused(`the end of ${this.claimId} was told before`, "claim_ended");
    this.#telling = true;
    const keyed = { idempotencyKey: newKey(), ...options };
    try {
      for (let isLast = once; ;) {
        try {
          const reply = await send(keyed);
          this.told = true;
          this.rk.pulse.delete(this);
          return reply;
        } catch (error) {
          const isGone = error instanceof LeaseLost || error instanceof AlreadyTerminal || error instanceof NotFound;
          if (isGone || (isPassing(error) && isLast)) {
            if (!once) await this.drop();
            throw error;
          }
          if (!isPassing(error)) throw error;
          // An end that was taken looks like a loss to heartbeats: one more try under its key tells.
          await sleep(1, options.signal);
          isLast = this.lease.isLost;
        }
      }
    } finally {
      this.#telling = false;
    }
  }

  #act(): void {
    if (this.#activeAt !== undefined) this.touch();
  }

  #end(end: End): void {
    this.rk.pulse.delete(this);
    this.lease.finish(end);
  }
}

function base64(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}
