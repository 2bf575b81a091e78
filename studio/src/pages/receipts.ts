/** The pages with the verifier. */
export { default as ledger } from "./Ledger.svelte";
export { default as receipt } from "./Receipt.svelte";
