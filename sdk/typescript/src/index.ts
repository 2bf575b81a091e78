/**
 * The TypeScript SDK of RedKey.
 *
 *     import { RedKey } from "redkey";
 *
 *     const rk = new RedKey();
 *     rk.worker({ queue: "podcast", roles: ["researcher"], handler: async (ctx) => ({ facts: await find(ctx.input) }) });
 *     await rk.run();
 *
 * The families of operations and their names are those of the Python SDK; ids come first, then one object with the
 * fields of the API, then options. `claim` and `claimNext` return a union by `status`: losing a race is not an error.
 */
export { Pages, type CallOptions } from "./calls.js";
export { RedKey, type Settings } from "./client.js";
export type { Card, Enlistment } from "./enlist.js";
export * from "./errors.js";
export type { PendingTask, Task, WaitOptions } from "./tasks.js";
export type { Api } from "./generated/api.js";
export type * as types from "./generated/types.js";
export {
  Hold,
  type Assignment,
  type Claimed,
  type ClaimNextOutcome,
  type ClaimOutcome,
  type Missed,
  type NoTasks,
  type Rejected,
} from "./hold.js";
export { Block, Done, Fail, Release, type BlockerType, type Completion, type FailureKind } from "./verdicts.js";
export type { Tally, WorkerOptions } from "./declared.js";
