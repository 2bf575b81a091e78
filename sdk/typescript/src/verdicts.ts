/** Verdicts: how a handler's work ended. A handler returns its output or a `Done`, or throws one of the others. */
import { ApiError, CallMisused, type ClientError } from "./errors.js";
import type { Api } from "./generated/api.js";

type Body<Call extends (...args: never[]) => unknown> = NonNullable<Parameters<Call>[1]>;
/** Details of completed work. */
export type Completion = Body<Api["claims"]["complete"]>;
/** The claim to request together with the previous verdict. */
export type ClaimNext = NonNullable<Completion["claimNext"]>;
export type FailureKind = NonNullable<Body<Api["claims"]["fail"]>["kind"]>;
/** The kinds of blockers. */
export type Blocker = Omit<Body<Api["claims"]["block"]>, "reason" | "blockerType">;
export type BlockerType = Body<Api["claims"]["block"]>["blockerType"];

/** Return this instead of the bare output to say more about the work. */
export class Done {
  constructor(
    readonly output: unknown = undefined,
    readonly said: Omit<Completion, "output" | "claimNext"> = {},
  ) {}
}

/** Throw this to fail the attempt. The task's retry policy decides on another attempt; `rejected` allows none. */
export class Fail extends Error {
  constructor(
    readonly reason: string,
    readonly kind: FailureKind = "error",
  ) {
    super(reason);
  }
}

/** Throw this if the work needs help from others. The task waits, and those who can help get a message. */
export class Block extends Error {
  constructor(
    readonly reason: string,
    readonly blockerType: BlockerType = "ambiguity",
    readonly said: Blocker = {},
  ) {
    super(reason);
  }
}

/** Throw this to release the task, unchanged, for other agents. */
export class Release extends Error {}

export type Verdict = Done | Fail | Block | Release;

/** Turn an error of a handler into a verdict. */
export function verdictOf(raised: unknown): Fail | Block | Release {
  if (raised instanceof Fail || raised instanceof Block || raised instanceof Release) return raised;
  const name = raised instanceof Error ? raised.name : "";
  const message = raised instanceof Error ? `${raised.name}: ${raised.message}` : String(raised);
  return new Fail(message, name === "TimeoutError" ? "timeout" : "error");
}

/** Return the verdict to report after the server refused one; undefined if nothing is left to report. */
export function afterRefusal(refused: ClientError, verdict: Verdict): Fail | undefined {
  if (verdict instanceof Fail) {
    // The server refused the handler's text, so use our own: invalid text must not prevent the next attempt.
    const said = `The handler failed, and the server refused its reason (${refused.code}).`;
    return verdict.reason === said ? undefined : new Fail(said, verdict.kind);
  }
  if (refused instanceof CallMisused) return new Fail(`The handler's result cannot be sent: ${refused.message}`);
  const detail = refused instanceof ApiError ? refused.detail : refused.message;
  return new Fail(`The server refused the handler's result (${refused.code}): ${detail}`, "verification");
}

/** Fill the required outputs that the handler has not recorded from its returned value. */
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
