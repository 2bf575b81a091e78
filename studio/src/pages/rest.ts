/** The pages that are small, as one file: together they compress to two thirds of what they need one by one. */
export { default as access } from "./Access.svelte";
export { default as agent } from "./Agent.svelte";
export { default as agents } from "./Agents.svelte";
export { default as approvals } from "./Approvals.svelte";
export { default as bus } from "./Bus.svelte";
export { default as plans } from "./Plans.svelte";
export { default as queue } from "./Queue.svelte";
export { default as queues } from "./Queues.svelte";
export { default as race } from "./Race.svelte";
export { default as runs } from "./Runs.svelte";
export { default as task } from "./Task.svelte";
export { default as usage } from "./Usage.svelte";
