/** Verdicts: how a handler's work ended. A handler returns its output or a `Done`, or throws one of the others. */
import { ApiError, CallMisused, type ClientError } from "./errors.js";
import type { Api } from "./generated/api.js";

type Body<Call extends (...args: never[]) => unknown> = NonNullable<Parameters<Call>[1]>;
/** What is said of work that is done. */
export type Completion = Body<Api["claims"]["complete"]>;
/** The claim to make together with the end of the one before. */
export type ClaimNext = NonNullable<Completion["claimNext"]>;
export type FailureKind = NonNullable<Body<Api["claims"]["fail"]>["kind"]>;
/** What stands in the way of a task. */
export type Blocker = Omit<Body<Api["claims"]["block"]>, "reason" | "blockerType">;
export type BlockerType = Body<Api["claims"]["block"]>["blockerType"];

/** Return this in place of the bare output to say more about the work. */
export class Done {
  constructor(
    readonly output: unknown = undefined,
    readonly said: Omit<Completion, "output" | "claimNext"> = {},
  ) {}
}

/** Throw this to fail the attempt; whether another follows is the task's retry policy, and `rejected` ends it. */
export class Fail extends Error {
  constructor(
    readonly reason: string,
    readonly kind: FailureKind = "error",
  ) {
    super(reason);
  }
}

/** Throw this when somebody else has to help first. The task waits, and those who can help get a message. */
export class Block extends Error {
  constructor(
    readonly reason: string,
    readonly blockerType: BlockerType = "ambiguity",
    readonly said: Blocker = {},
  ) {
    super(reason);
  }
}

/** Throw this to give the task back, unharmed, for others. */
export class Release extends Error {}

export type Verdict = Done | Fail | Block | Release;

/** What an error of a handler means. */
export function verdictOf(raised: unknown): Fail | Block | Release {
  if (raised instanceof Fail || raised instanceof Block || raised instanceof Release) return raised;
  const name = raised instanceof Error ? raised.name : "";
  const message = raised instanceof Error ? `${raised.name}: ${raised.message}` : String(raised);
  return new Fail(message, name === "TimeoutError" ? "timeout" : "error");
}

/** What to report when the server does not take a verdict; undefined when there is nothing left to say. */
export function afterRefusal(refused: ClientError, verdict: Verdict): Fail | undefined {
  if (verdict instanceof Fail) {
    // Its words were refused, so these are ours: the wrong words must not keep the task from its next attempt.
    const said = `The handler failed; what it said was refused (${refused.code}).`;
    return verdict.reason === said ? undefined : new Fail(said, verdict.kind);
  }
  if (refused instanceof CallMisused) return new Fail(`What the handler gave cannot be sent: ${refused.message}`);
  const detail = refused instanceof ApiError ? refused.detail : refused.message;
  return new Fail(`What the handler gave was refused (${refused.code}): ${detail}`, "verification");
}

/** What a handler returns fills the outputs that its task must have and that it did not make itself. */
export function shareOut(
  outputs: readonly string[],
  made: ReadonlySet<string>,
  given: unknown,
): [Record<string, unknown>, unknown] {
  const missing = outputs.filter((name) => !made.has(name));
  const [first, ...others] = missing;
  if (first === undefined || given == null) return [{}, given];
  if (typeof given === "object" && !Array.isArray(given) && !(given instanceof Uint8Array)) {
    const fields = Object.entries(given);
    const named = fields.filter(([name]) => missing.includes(name));
    const rest = fields.filter(([name]) => !missing.includes(name));
    if (named.length) return [Object.fromEntries(named), rest.length ? Object.fromEntries(rest) : undefined];
  }
  return others.length ? [{}, given] : [{ [first]: given }, undefined];
}
