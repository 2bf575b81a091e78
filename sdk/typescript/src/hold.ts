/** One task held by an agent: the context of a worker's handler, and a claim that adapters keep without a handler. */
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
/** Another agent won. Do not try the same task again at once. */
export type Missed = Extract<ClaimNextOutcome, { status: "missed" }>;
/** The agent is not allowed to claim this. */
export type Rejected = Extract<ClaimNextOutcome, { status: "rejected" }>;
/** There is no task that the agent may claim now. */
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

// The server's limit; longer texts are cut.
const PROGRESS_CHARACTERS = 2000;
/** On a network-ordered workspace, a heartbeat that extends a lease takes 5 to 10 seconds. */
const BEAT_SECONDS = 15;
// Larger bodies are uploaded as content first; a request may have 1 MiB in total.
const INLINE_BYTES = 256 * 1024;

/**
 * A won claim, kept alive by heartbeats until it ends.
 *
 * `complete`, `fail`, `block` and `release` end it, once. If the server refuses one of them, the hold continues and you
 * may try another. `signal` aborts when another agent may have the task.
 */
export class Hold implements Held {
  readonly status = "claimed";
  readonly claimId: string;
  readonly agentId: string;
  /** The names of the ready artifacts of the task. */
  readonly made = new Set<string>();
  /** Whether the server has accepted an end of this hold. */
  told = false;
  /** Whether the holder was idle for so long that others may claim the task. */
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
    /** Aborts when the worker has to stop: finish soon, or throw `Release`. */
    readonly stopping: AbortSignal,
  ) {
    this.claimId = claimed.claimId;
    this.agentId = claimed.agentId;
  }

  /** The task's input; a plan's task without its own input has the input of the run. */
  get input(): any {
    return this.task.input ?? this.task.workflowInput;
  }

  /** The answer that lifted the task's last block; empty if there was no block, or no answer. */
  get answer(): string {
    return this.task.answer ?? "";
  }

  /**
   * Count as active now. A hold without a handler stalls after the `idleSeconds` of its queue without activity: others
   * may claim the task. The next call or `touch` resumes the hold if no other agent has claimed the task.
   */
  touch(): void {
    this.#activeAt = now();
    if (this.stalled) void this.beat();
  }

  /** Aborts when the lease is lost or the task cancelled; its reason is a `WorkInterrupted`. */
  get signal(): AbortSignal {
    return this.lease.signal;
  }

  /** Whether another agent may have the task by now. */
  get leaseLost(): boolean {
    return this.lease.isLost;
  }

  get cancelled(): boolean {
    return this.lease.end === "cancelled";
  }

  /** Throw `WorkInterrupted` if the work should stop; call it at safe points. */
  check(): void {
    if (this.lease.isLost) throw this.lease.reason();
  }

  /** Record an output under a name: text, bytes, or any JSON value. */
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

  /** Record the returned value as the required outputs that are missing; return the rest. */
  async fill(returned: unknown): Promise<unknown> {
    const [named, rest] = shareOut(this.task.outputs ?? [], this.made, returned);
    for (const [name, content] of Object.entries(named)) await this.artifact(name, content);
    return rest;
  }

  /**
   * Report how far the work is, for people who watch the task: a sentence, a percentage, or both.
   *
   * Call it as often as you like: at most one report a second is sent, and the newest is always sent. `recorded` is
   * false for a report that waits for its turn. A report that still waits when the hold ends is dropped.
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

  /** Keep the newest report until it is due. */
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
    // The timer must not keep the process alive; in browsers it is a number.
    if (typeof timer === "object") (timer as { unref?: () => void }).unref?.();
  }

  /** Log a line with the task's title to the client's `log`. */
  log(message: string): void {
    this.rk.log(`${this.task.title || this.task.taskId}: ${message}`);
  }

  /** Return the current state of the task. */
  view() {
    this.#act();
    return this.rk.tasks.get(this.task.taskId);
  }

  /** Record the plan that the work follows. */
  plan(plan: Parameters<Api["claims"]["plan"]>[1]["plan"]) {
    this.#act();
    return this.rk.claims.plan(this.claimId, { plan });
  }

  /** Return the bytes of an upstream task's artifact, by its name. */
  async read(name: string): Promise<Uint8Array<ArrayBuffer>> {
    this.#act();
    return this.rk.content.get(this.upstream(name).sha256);
  }

  /** Return the record of an upstream task's artifact. */
  upstream(name: string): Upstream {
    const known = this.task.upstream ?? [];
    const found = known.find((one) => one.name === name);
    if (found) return found;
    const names = known.map((one) => one.name).join(", ") || "none";
    throw new CallMisused(`no upstream task has an artifact "${name}"; available: ${names}`, "no_such_artifact");
  }

  /** Record that the work has started. */
  start() {
    this.#act();
    return this.rk.claims.start(this.claimId);
  }

  /** Complete the task. */
  complete(completion: Completion = {}, options: CallOptions = {}) {
    return this.#tell((keyed) => this.rk.claims.complete(this.claimId, completion, keyed), options);
  }

  /** Fail the attempt. */
  fail(
    reason: string,
    kind: FailureKind = "error",
    claimNext: Completion["claimNext"] = null,
    options: CallOptions = {},
  ) {
    return this.#tell((keyed) => this.rk.claims.fail(this.claimId, { reason, kind, claimNext }, keyed), options);
  }

  /** Block the task. */
  block(reason: string, blockerType: BlockerType = "ambiguity", said: Blocker = {}, options: CallOptions = {}) {
    return this.#tell((keyed) => this.rk.claims.block(this.claimId, { reason, blockerType, ...said }, keyed), options);
  }

  /** Release the task for others. */
  release(options: CallOptions = {}) {
    return this.#tell((keyed) => this.rk.claims.release(this.claimId, {}, keyed), options);
  }

  /** Release the task before its handler has ended, and interrupt the handler. */
  async giveBack(options: CallOptions): Promise<boolean> {
    if (this.told || this.#telling || this.lease.end) return false;
    try {
      await this.#tell((keyed) => this.rk.claims.release(this.claimId, {}, keyed), options, true);
    } finally {
      this.#end("stopped");
    }
    return true;
  }

  /** Send a heartbeat; return whether it was answered. */
  async beat(): Promise<boolean> {
    const askedAt = now();
    const activity = this.#activeAt === undefined ? {} : { idleSeconds: Math.floor(askedAt - this.#activeAt) };
    try {
      const timeoutSeconds = Math.min(Math.max(this.lease.seconds / 3, 1), BEAT_SECONDS);
      const heard = await this.rk.claims.heartbeat(this.claimId, activity, { timeoutSeconds, maxRetries: 0 });
      // A refusal after the end was accepted refers to that end.
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

  /** The claim is lost. The refusal is the same for a cancelled task; a heartbeat finds out which it is. */
  async drop(): Promise<void> {
    if (!this.lease.end) await this.beat();
    this.#end("lease_lost");
  }

  /** Send the end, always under one key, until the server has it or the hold may have ended. */
  async #tell<Reply>(send: (keyed: CallOptions) => Promise<Reply>, options: CallOptions, once = false): Promise<Reply> {
    if (this.told || this.#telling) throw new CallMisused(`the end of ${this.claimId} was already sent`, "claim_ended");
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
          // After an accepted end, heartbeats report a loss: one more try under the same key shows which it is.
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
