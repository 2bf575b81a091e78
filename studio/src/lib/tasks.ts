/**
 * The tasks that the page keeps, by state. A task that changes its state goes to the end of the list of the new one, so
 * every list is in the order of change without being sorted, and a count costs nothing.
 */
import type { LiveTask } from "./world.svelte";

export class Tasks {
  #all = new Map<string, LiveTask>();
  #states = new Map<string, Map<string, LiveTask>>();

  get size(): number {
    return this.#all.size;
  }

  get(id: string): LiveTask | undefined {
    return this.#all.get(id);
  }

  has(id: string): boolean {
    return this.#all.has(id);
  }

  values(): Iterable<LiveTask> {
    return this.#all.values();
  }

  /** Keep a task in the place of the one with its id. */
  set(task: LiveTask): void {
    const before = this.#all.get(task.taskId);
    this.#all.set(task.taskId, task);
    if (before && (before.state !== task.state || before.since !== task.since)) this.#states.get(before.state)?.delete(task.taskId);
    let list = this.#states.get(task.state);
    if (!list) this.#states.set(task.state, (list = new Map()));
    list.set(task.taskId, task);
  }

  /** Put all lists in order, once: what was read came queue by queue. */
  sort(): void {
    for (const [state, list] of this.#states) {
      const sorted = [...list].sort(([, a], [, b]) => (a.since < b.since ? -1 : 1));
      this.#states.set(state, new Map(sorted));
    }
  }

  delete(id: string): void {
    const task = this.#all.get(id);
    if (!task) return;
    this.#all.delete(id);
    this.#states.get(task.state)?.delete(id);
  }

  /** How many tasks are in these states. */
  count(...states: string[]): number {
    return states.reduce((sum, state) => sum + (this.#states.get(state)?.size ?? 0), 0);
  }

  /** The tasks in these states, the oldest change first; at most so many. */
  inState(states: readonly string[], most = Infinity): LiveTask[] {
    const found: LiveTask[] = [];
    for (const state of states) {
      let taken = 0;
      for (const task of this.#states.get(state)?.values() ?? []) {
        if (taken++ >= most) break;
        found.push(task);
      }
    }
    // Each list is in order: one alone needs no sorting.
    if (states.length > 1) found.sort((a, b) => (a.since < b.since ? -1 : a.since > b.since ? 1 : 0));
    return found.length > most ? found.slice(0, most) : found;
  }
}
