/** The type of a tool, and what tools share: common parameters, and how to end a claim. */
import { setTimeout as sleep } from "node:timers/promises";
import { Unreachable, type CallOptions } from "redkey";
import type { Gateway } from "./gateway.js";
import type { Kept } from "./holds.js";
import type { Identity } from "./identities.js";
import { ToolProblem } from "./problems.js";
import type { Schema } from "./schema.js";

export interface Call {
  gateway: Gateway;
  identity: Identity;
  signal: AbortSignal | undefined;
  /** Limits the call's time, so that an unreachable server causes an error and not a silence. */
  options: CallOptions;
  /** Equal for equal arguments, whether the claim is named or not. */
  key: string;
}

export interface Tool<Args = any> {
  name: string;
  label: string;
  description: string;
  parameters: Schema & { type: "object" };
  /** Whether it uses the configured key, because an agent's own key may not create work. */
  produces?: true;
  run(args: Args, call: Call): Promise<Record<string, unknown>>;
}

export const claimId: Schema = {
  type: "string",
  minLength: 1,
  description: "The claim, as redkey_claim_next gave it; may be left out while you hold one task only.",
};
export const queue: Schema = { type: "string", minLength: 1, description: "The queue; your usual one when left out." };
export const words = (description: string): Schema => ({ type: "string", minLength: 1, maxLength: 8000, description });
export const list = (description: string): Schema => ({
  type: "array",
  items: { type: "string", minLength: 1 },
  description,
});

export function takes(properties: Record<string, Schema>, required: string[] = []): Tool["parameters"] {
  return { type: "object", additionalProperties: false, properties, required };
}

/** End a claim; repeating the call returns the same answer. */
export async function ending(
  { gateway, identity, options, key }: Call,
  claimId: string | undefined,
  end: (kept: Kept, options: CallOptions) => Promise<Record<string, unknown>>,
): Promise<{ task: unknown }> {
  if (claimId === undefined && !gateway.holds.of(identity.name).length) {
    const answer = await gateway.holds.answered(identity.name, key);
    if (answer) return { task: answer };
  }
  const kept = await gateway.holds.find(identity, claimId, options);
  const { hold, answers } = kept;
  let answer = answers.get(key);
  if (!answer) {
    if (hold.told) throw new ToolProblem(`The claim ${hold.claimId} has ended. Call redkey_claim_next for other work.`);
    const keyed = { ...options, idempotencyKey: `${hold.claimId}-${key}` };
    answer = patiently(() => end(kept, keyed), options.signal);
    answers.set(key, answer);
    answer.catch(() => answers.delete(key));
  }
  return { task: await answer };
}

/** Do not lose finished work to a server restart: retry until the call's timeout. */
async function patiently<Result>(run: () => Promise<Result>, signal: AbortSignal | undefined): Promise<Result> {
  for (;;) {
    try {
      return await run();
    } catch (error) {
      if (!(error instanceof Unreachable) || signal?.aborted) throw error;
      await sleep(1000, undefined, signal ? { signal } : {}).catch(() => signal?.throwIfAborted());
    }
  }
}
