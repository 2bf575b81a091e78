/**
 * The pages of the Studio, in four files. Each file is read when one of its pages is first opened, so that the first
 * page is drawn without waiting for the others; all are read when the browser is idle, so that later pages open at once
 * and also while the server is away.
 */
import type { Component } from "svelte";
import type { World } from "./world.svelte";

type Page = Component<{ world: World; id: string }>;
type Pages = Record<string, unknown>;

const FILES: [names: string[], read: () => Promise<Pages>][] = [
  [["now"], async () => ({ now: (await import("../pages/Now.svelte")).default })],
  [["access", "agent", "agents", "approvals", "bus", "plans", "queue", "queues", "race", "runs", "task", "usage"], () => import("../pages/rest")],
  [["ledger", "receipt"], () => import("../pages/receipts")],
  [["run"], async () => ({ run: (await import("../pages/Run.svelte")).default })],
];
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

const fileOf = (name: string) => FILES.find(([names]) => names.includes(name));

export const exists = (page: string): boolean => Boolean(fileOf(ALIASES[page] ?? page));

/** A page: at once when it has been read, else when it has come. */
export function load(page: string): Page | Promise<Page> {
  const name = ALIASES[page] ?? page;
  return known.get(name) ?? read(name);
}

/** Read all pages, one after the other, when nothing else is to be done. */
export async function loadAll(): Promise<void> {
  for (const [[name = ""]] of FILES) {
    await new Promise<void>((resolve) => requestIdleCallback(() => resolve(), { timeout: 2000 }));
    await read(name);
  }
}

async function read(name: string): Promise<Page> {
  const file = fileOf(name);
  if (!file) throw new Error(`There is no page ${name}.`);
  const [names, pages] = [file[0], await file[1]()];
  for (const one of names) known.set(one, pages[one] as Page);
  return pages[name] as Page;
}
