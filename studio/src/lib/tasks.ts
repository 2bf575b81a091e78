/**
 * The tasks that the page keeps, by state and by queue. A task that changes its state goes to the end of the lists of
 * the new one: every list is in the order of change without being sorted, and a count costs nothing.
 */

/** A task as lists show it. */
export interface LiveTask {
  taskId: string;
  queueId: string;
  workflowId: string;
  title: string;
  state: string;
  attempt: number;
  roles: readonly string[];
  agentId: string;
  leaseExpiresAt: string;
  since: string;
  percent: number | undefined;
}

type List = Map<string, LiveTask>;

export class Tasks {
  #all: List = new Map();
  /** Lists by state: of the whole workspace under "", and of each queue under its id. */
  #lists = new Map<string, Map<string, List>>();

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
    const moved = before && (before.state !== task.state || before.since !== task.since || before.queueId !== task.queueId);
    if (before && moved) this.#remove(before);
    for (const queueId of new Set(["", task.queueId])) this.#list(queueId, task.state).set(task.taskId, task);
  }

  /** Put all lists in order, once: answers of the API come queue by queue. */
  sort(): void {
    for (const states of this.#lists.values()) {
      for (const [state, list] of states) states.set(state, new Map([...list].sort(([, a], [, b]) => earlier(a, b))));
    }
  }

  delete(id: string): void {
    const task = this.#all.get(id);
    if (!task) return;
    this.#all.delete(id);
    this.#remove(task);
  }

  /** How many tasks are in these states, in the workspace or in one queue. */
  count(states: readonly string[], queueId = ""): number {
    return states.reduce((sum, state) => sum + (this.#lists.get(queueId)?.get(state)?.size ?? 0), 0);
  }

  /** The task that has been in a state of a queue for the longest time. */
  oldest(state: string, queueId: string): LiveTask | undefined {
    return this.#lists.get(queueId)?.get(state)?.values().next().value;
  }

  /** Each task in these states, state by state. */
  *each(states: readonly string[], queueId = ""): Generator<LiveTask, void, undefined> {
    for (const state of states) yield* this.#lists.get(queueId)?.get(state)?.values() ?? [];
  }

  /** The tasks in these states, the oldest change first; at most so many. */
  inState(states: readonly string[], { most = Infinity, queueId = "" } = {}): LiveTask[] {
    const found: LiveTask[] = [];
    for (const state of states) {
      let taken = 0;
      for (const task of this.each([state], queueId)) {
        if (taken++ >= most) break;
        found.push(task);
      }
    }
    // Each list is in order: one alone needs no sorting.
    if (states.length > 1) found.sort(earlier);
    return found.length > most ? found.slice(0, most) : found;
  }

  #list(queueId: string, state: string): List {
    let states = this.#lists.get(queueId);
    if (!states) this.#lists.set(queueId, (states = new Map()));
    let list = states.get(state);
    if (!list) states.set(state, (list = new Map()));
    return list;
  }

  #remove(task: LiveTask): void {
    this.#lists.get("")?.get(task.state)?.delete(task.taskId);
    this.#lists.get(task.queueId)?.get(task.state)?.delete(task.taskId);
  }
}

const earlier = (a: LiveTask, b: LiveTask): number => (a.since < b.since ? -1 : a.since > b.since ? 1 : 0);
