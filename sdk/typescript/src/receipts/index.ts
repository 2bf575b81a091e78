/** Receipts: verify what a receipt proves from only its bytes and the caller's keys, offline and in browsers. */
export { Refused } from "./json.js";
export type { Finding, Level } from "./levels.js";
export { verifyReceipt, type LevelName, type Policy, type Verdict } from "./verify.js";
export type { ProvenEvent } from "./records.js";
