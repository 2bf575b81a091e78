/** What the SDK adds to the operations of tasks: waiting, results, and batches of any size. */
import { newKey, type CallOptions } from "./calls.js";
import type { RedKey } from "./client.js";
import { ApiError, TimedOut, WorkFailed } from "./errors.js";
import type { Api } from "./generated/api.js";
import type { NewTasks, TaskResults } from "./generated/types.js";

type Calls = Api["tasks"];
export type Task = Awaited<ReturnType<Calls["get"]>>;
type Created = Awaited<ReturnType<Calls["create"]>>;

export interface WaitOptions {
  /** Ends the wait: its promise is rejected with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** `TimedOut` if some tasks have not ended after this time; they continue, and you may wait again. */
  timeoutSeconds?: number | undefined;
}

/** A created task, and a way to wait for its result. */
export type PendingTask = Created & {
  /** Wait for the task to end and return its output; `WorkFailed` with the reason. */
  result(options?: WaitOptions): Promise<any>;
};

export interface Tasks extends Omit<Calls, "create"> {
  create(...args: Parameters<Calls["create"]>): Promise<PendingTask>;
  /** Wait until a task has ended: completed and approved, failed for good, or cancelled. */
  wait(taskId: string, options?: WaitOptions): Promise<Task>;
  /** Wait until all these tasks have ended and return them in this order. */
  wait(taskIds: readonly string[], options?: WaitOptions): Promise<Task[]>;
  /** Yield each task as soon as it has ended. */
  asEnded(taskIds: readonly string[], options?: CallOptions): AsyncGenerator<Task, void, undefined>;
}

const ENDS = ["task.complete", "task.failed", "task.cancelled", "gate.approved", "gate.rejected"];
const BATCH_LIMIT = 500;
// A request may have 1 MiB in total.
const BATCH_BYTES = 768 * 1024;

/** The operations of tasks, with the additions of the SDK. */
export function tasksOf(rk: RedKey, calls: Calls): Tasks {
  return Object.assign(calls, {
    create: withResult(rk, calls.create),
    createMany: inBatches(calls.createMany),
    wait: (ids: string | readonly string[], options?: WaitOptions) =>
      typeof ids === "string" ? waitFor(rk, [ids], options).then(([task]) => task) : waitFor(rk, ids, options),
    asEnded: (ids: readonly string[], options?: CallOptions) => asEnded(rk, ids, options),
  }) as Tasks;
}

/** Whether the task's state is final. A completion that waits for approval is not. */
function hasEnded(task: Task): boolean {
  return task.state === "failed" || task.state === "cancelled" || (task.state === "completed" && !task.gateId);
}

async function* asEnded(
  rk: RedKey,
  taskIds: readonly string[],
  options: CallOptions = {},
): AsyncGenerator<Task, void, undefined> {
  // The current head of the ledger, so that no event is missed between reading a task and following the stream.
  const head = (await rk.ledger.query({ order: "desc", limit: 1 }, options).page()).items[0]?.sequence ?? 0;
  const pending = new Set(taskIds);
  const look = async (taskId: string): Promise<Task | undefined> => {
    const task = await rk.tasks.get(taskId, {}, options);
    return hasEnded(task) && pending.delete(taskId) ? task : undefined;
  };
  for (const taskId of [...pending]) {
    const task = await look(taskId);
    if (task) yield task;
  }
  if (!pending.size) return;
  // Servers of version 0.1 know `types` too.
  for await (const event of rk.events.follow({ types: ENDS, after: head }, options)) {
    const about = new Set([event.subject.id, String(event.data["taskId"] ?? "")]);
    for (const taskId of about) {
      const task = pending.has(taskId) ? await look(taskId) : undefined;
      if (task) yield task;
    }
    if (!pending.size) return;
  }
}

async function waitFor(
  rk: RedKey,
  taskIds: readonly string[],
  { signal, timeoutSeconds }: WaitOptions = {},
): Promise<Task[]> {
  const over = new AbortController();
  const timer = timeoutSeconds === undefined ? undefined : setTimeout(() => over.abort(), timeoutSeconds * 1000);
  const found = new Map<string, Task>();
  try {
    const either = signal ? AbortSignal.any([signal, over.signal]) : over.signal;
    for await (const task of asEnded(rk, taskIds, { signal: either })) found.set(task.taskId, task);
  } catch (error) {
    if (!over.signal.aborted || signal?.aborted) throw error;
    const all = new Set(taskIds);
    const missing = [...all].filter((taskId) => !found.has(taskId));
    const named = missing.slice(0, 3).join(", ") + (missing.length > 3 ? ", ..." : "");
    throw new TimedOut(`${missing.length} of ${all.size} tasks have not ended after ${timeoutSeconds} s: ${named}`);
  } finally {
    clearTimeout(timer);
  }
  return taskIds.map((taskId) => found.get(taskId)!);
}

/** Create tasks whose results can be waited for. */
function withResult(rk: RedKey, create: Calls["create"]): Tasks["create"] {
  return async (...args) => {
    const created = await create(...args);
    const result = async (options?: WaitOptions) => outputOf(await rk.tasks.wait(created.taskId, options));
    // Not an enumerable field, so that the reply is printed and compared as received.
    return Object.defineProperty(created, "result", { value: result, enumerable: false }) as PendingTask;
  };
}

/** Return the output of a completed task; `WorkFailed` if the task failed or was cancelled. */
function outputOf(task: Task): unknown {
  if (task.state === "completed") return task.output;
  const named = `${task.taskId} (${task.title})`;
  if (task.state === "cancelled") throw new WorkFailed(`${named} was cancelled`, "task_cancelled");
  const kind = task.failure ? ` (${task.failure.kind})` : "";
  const why = task.failure?.reason ? `: ${task.failure.reason}` : "";
  throw new WorkFailed(`${named} failed${kind}${why}`);
}

/** Create many tasks in as many requests as needed; if one fails, the error says how many tasks were sent before. */
function inBatches(createMany: Calls["createMany"]): Calls["createMany"] {
  return async (queue, body, options = {}) => {
    const parts = [...batches(body.tasks)];
    if (parts.length <= 1) return createMany(queue, body, options);
    const items: Array<TaskResults["items"][number]> = [];
    // A key belongs to one request: the later requests append their number to it.
    const key = options.idempotencyKey ?? newKey();
    let number = 0;
    for (const tasks of parts) {
      number++;
      const idempotencyKey = number === 1 ? key : `${key.slice(0, 250)}-${number}`;
      try {
        items.push(...(await createMany(queue, { ...body, tasks }, { ...options, idempotencyKey })).items);
      } catch (error) {
        if (error instanceof ApiError && items.length) error.handledBefore = items.length;
        throw error;
      }
    }
    return { items };
  };
}

/** Split a list into batches that fit into one request each; the server refuses anything that is not a list. */
function* batches(tasks: NewTasks["tasks"]): Generator<NewTasks["tasks"]> {
  if (!Array.isArray(tasks)) return;
  let batch: Array<NewTasks["tasks"][number]> = [];
  let size = 0;
  for (const task of tasks) {
    const { length } = new TextEncoder().encode(JSON.stringify(task));
    if (batch.length && (batch.length === BATCH_LIMIT || size + length > BATCH_BYTES)) {
      yield batch;
      [batch, size] = [[], 0];
    }
    batch.push(task);
    size += length;
  }
  if (batch.length) yield batch;
}
