/**
 * The pages of the Studio. Each is a file of its own, read when it is first opened, so that the first page is drawn
 * without waiting for the others; all are read when the browser is idle, so that later pages open at once and also
 * while the server is away.
 */
import type { Component } from "svelte";
import type { World } from "./world.svelte";

type Page = Component<{ world: World; id: string }>;
type Module = { default: unknown };

const FILES: Record<string, () => Promise<Module>> = {
  access: () => import("../pages/Access.svelte"),
  agent: () => import("../pages/Agent.svelte"),
  agents: () => import("../pages/Agents.svelte"),
  approvals: () => import("../pages/Approvals.svelte"),
  bus: () => import("../pages/Bus.svelte"),
  ledger: () => import("../pages/Ledger.svelte"),
  now: () => import("../pages/Now.svelte"),
  plans: () => import("../pages/Plans.svelte"),
  queue: () => import("../pages/Queue.svelte"),
  queues: () => import("../pages/Queues.svelte"),
  race: () => import("../pages/Race.svelte"),
  receipt: () => import("../pages/Receipt.svelte"),
  run: () => import("../pages/Run.svelte"),
  runs: () => import("../pages/Runs.svelte"),
  task: () => import("../pages/Task.svelte"),
  usage: () => import("../pages/Usage.svelte"),
};
const ALIASES: Record<string, string> = { approval: "approvals" };
const known = new Map<string, Page>();

/** Key, page, name: the pages of the menu. `g` and the key open them. */
export const MENU = [
  ["n", "now", "Now"],
  ["q", "queues", "Queues"],
  ["r", "runs", "Runs"],
  ["p", "plans", "Plans"],
  ["a", "approvals", "Approvals"],
  ["e", "agents", "Agents"],
  ["c", "race", "Race"],
  ["l", "ledger", "Ledger"],
  ["b", "bus", "Bus"],
  ["u", "usage", "Usage"],
  ["k", "access", "Access"],
] as const;
const OWNERS: Record<string, string> = { task: "queues", queue: "queues", run: "runs", agent: "agents", approval: "approvals", receipt: "ledger" };

/** The page of the menu that a page belongs to. */
export const menuPage = (page: string): string => OWNERS[page] ?? page;

export const exists = (page: string): boolean => (ALIASES[page] ?? page) in FILES;

/** A page: at once when it has been read, else when it has come. */
export function load(page: string): Page | Promise<Page> {
  const name = ALIASES[page] ?? page;
  return known.get(name) ?? read(name);
}

/** Read all pages, one after the other, when nothing else is to be done. */
export async function loadAll(): Promise<void> {
  for (const name of Object.keys(FILES)) {
    await new Promise<void>((resolve) => requestIdleCallback(() => resolve(), { timeout: 2000 }));
    await read(name);
  }
}

async function read(name: string): Promise<Page> {
  const file = FILES[name];
  if (!file) throw new Error(`There is no page ${name}.`);
  const page = (await file()).default as Page;
  known.set(name, page);
  return page;
}
