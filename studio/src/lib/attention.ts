/** What needs a human: every cause by the server's own explanation, with the action that removes it. */
import type { types } from "redkey";
import { bareName, plural, stateWord } from "./format";
import { href } from "./router.svelte";
import { session } from "./session.svelte";
import type { LiveTask } from "./tasks";
import type { World } from "./world.svelte";

/** One thing that needs a human. `kind` says which actions fit. */
export interface Concern {
  key: string;
  kind: string;
  text: string;
  detail: string;
  page: string;
  id: string;
  step: types.NextStep;
  since: string;
}

/** Causes that are not shown one by one, as a link to the page that lists them. */
export interface More {
  count: number;
  text: string;
  href: string;
}

export interface Needs {
  /** The oldest first. */
  concerns: Concern[];
  more: More[];
  /** How many causes there are, also those that are not shown. */
  total: number;
}

// Reasons that pass by themselves: an agent will come, or a task will end. A task that can never end has its own line.
const PASSING = new Set(["completed", "not_claimed", "all_saturated", "parallel_limit", "agents_paused", "unmet_dependency"]);
/** How many of each kind are explained: each costs requests. No kind takes the place of another. */
const MOST = { blocked: 10, failed: 10, available: 10, created: 5 };

const DISMISSED = "redkey.dismissed";
const dismissed = new Set<string>(JSON.parse(sessionStorage.getItem(DISMISSED) ?? "[]") as string[]);
const attemptOf = (task: LiveTask): string => `${task.taskId} ${task.attempt}`;

/** Hide the failure of a task in this tab. It is shown again if another attempt fails. */
export function dismiss(world: World, taskId: string): void {
  const task = world.tasks.get(taskId);
  if (task) dismissed.add(attemptOf(task));
  sessionStorage.setItem(DISMISSED, JSON.stringify([...dismissed]));
  world.version++;
}

/** Everything that needs a human now. */
export async function concerns(world: World): Promise<Needs> {
  const found: Concern[] = [];
  const more: More[] = [];
  const credits = world.credits;
  const cheapest = Math.min(...Object.values(credits?.prices ?? {}).filter((price) => price > 0), 1);
  if (credits && credits.balance !== null && credits.balance < cheapest) {
    const text = "No credits left: new tasks are refused.";
    found.push(concern("credits", "credits", text, `${credits.used} of ${credits.granted} ${credits.unit} used`, "usage", "", ""));
  }
  for (const hook of world.webhooks.values()) {
    if (hook.state !== "parked") continue;
    const detail = hook.lastError ?? "";
    found.push(concern(hook.webhookId, "webhook", `Webhook ${hook.receiverUrl} cannot be reached.`, detail, "access", "", hook.lastDeliveredAt ?? ""));
  }
  for (const agent of world.agents.values()) {
    if (!agent.active || agent.pause !== "start_failed") continue;
    const text = `${world.agentName(agent.agentId)} cannot start: its card or command is broken.`;
    found.push(concern(agent.agentId, "card", text, "The runner paused it after repeated failures.", "agent", agent.agentId, agent.lastActAt));
  }
  for (const gate of world.gates.values()) {
    const title = gate.title || world.title(gate.taskId);
    found.push(concern(gate.gateId, "gate", `“${title}” is completed and needs approval.`, `by ${world.agentName(gate.agentId ?? "")}`, "approval", gate.gateId, gate.openedAt));
  }
  const samples = [...oneByOne(world, "blocked", more), ...oneByOne(world, "failed", more), ...groups(world, "available", more), ...groups(world, "created", more)];
  const hidden = more.reduce((sum, one) => sum + one.count, 0);
  const explained = await Promise.all(samples.map((group) => explain(world, group)));
  found.push(...explained.flat());
  return { concerns: found.sort((a, b) => (a.since < b.since ? -1 : 1)), more, total: found.length + hidden };
}

/** Tasks in a state, each by itself. How many more there are, queue by queue, goes to `more`. */
function oneByOne(world: World, state: "blocked" | "failed", more: More[]): LiveTask[][] {
  const shown: LiveTask[][] = [];
  const left = new Map<string, number>();
  for (const task of world.tasks.each([state])) {
    if (dismissed.has(attemptOf(task))) continue;
    if (shown.length < MOST[state]) shown.push([task]);
    else left.set(task.queueId, (left.get(task.queueId) ?? 0) + 1);
  }
  for (const [queueId, count] of left) {
    const text = `${plural(count, `more ${state} task`)} in ${bareName(queueId)}`;
    more.push({ count, text, href: `${href("queue", queueId)}?tab=${state}` });
  }
  return shown;
}

/** Tasks that no agent holds, as groups that have the same reason: those of a paused queue, and those of one queue that
 * need the same roles. */
function groups(world: World, state: "available" | "created", more: More[]): LiveTask[][] {
  const found = new Map<string, LiveTask[]>();
  for (const task of world.tasks.each([state])) {
    const like = world.queues.get(task.queueId)?.paused ? task.queueId : `${task.queueId} ${task.roles.join()} ${task.workflowId}`;
    const group = found.get(like);
    if (group) group.push(task);
    else found.set(like, [task]);
  }
  const left = found.size - MOST[state];
  if (left > 0) more.push({ count: 0, text: `${plural(left, `more group`)} of ${stateWord(state)} tasks, not examined`, href: href("queues") });
  return [...found.values()].slice(0, MOST[state]);
}

async function explain(world: World, group: LiveTask[]): Promise<Concern[]> {
  const [task] = group;
  if (!task) return [];
  let reasons: types.Reason[];
  let whole: types.Task | undefined;
  try {
    ({ reasons } = await session.client.tasks.explain(task.taskId));
    if (task.state === "blocked" || task.state === "failed") whole = await session.client.tasks.get(task.taskId);
  } catch (error) {
    session.endsWith(error);
    return [];
  }
  if (whole?.failure?.kind === "dependency_failed") return [dependency(world, task, whole)];
  const paused = reasons.filter((reason) => reason.code === "queue_paused");
  return (paused.length ? paused : reasons.filter((reason) => !PASSING.has(reason.code))).map((reason) => {
    const key = `${task.taskId} ${reason.code}`;
    const [text, detail] = told(world, group, reason, whole);
    return { ...concern(key, reason.code, text, detail, "task", task.taskId, task.since), step: { taskId: task.taskId, ...reason.next } };
  });
}

/** A task that failed because one before it did: both are retried together. */
function dependency(world: World, task: LiveTask, whole: types.Task): Concern {
  const before = (whole.waitsFor ?? whole.dependsOn ?? []).find((id) => ["failed", "cancelled"].includes(world.tasks.get(id)?.state ?? "failed")) ?? "";
  const text = `“${world.title(task.taskId)}” failed: it depends on “${world.title(before)}”, which failed.`;
  return { ...concern(`${task.taskId} dependency`, "dependency", text, "", "task", task.taskId, task.since), step: { action: "retry", taskId: before } };
}

function told(world: World, group: LiveTask[], reason: types.Reason, whole?: types.Task): [string, string] {
  const [task] = group;
  const title = `“${world.title(task?.taskId ?? "")}”`;
  const waits = group.length === 1 ? `${title} cannot start` : `${plural(group.length, "task")} cannot start`;
  const { next } = reason;
  if (reason.code === "missing_role") return [`${waits}: no agent has the role ${bareName(next.roleId ?? "")}.`, "Grant the role to an agent, or start a worker that has it."];
  if (reason.code === "queue_paused") return [`${waits}: the queue ${bareName(task?.queueId ?? "")} is paused.`, ""];
  if (reason.code === "failed") {
    if (reason.message.includes("lease_losses")) return [`${title} failed: agents lost its lease too often.`, "The agents crash or are too slow. Check them, then retry."];
    return [`${title} failed.`, whole?.failure?.reason || reason.message];
  }
  if (reason.code === "blocked") return [`${title} is blocked and needs an answer.`, whole?.blocker?.reason || reason.message];
  if (reason.code === "no_agent_alive" || reason.code === "no_agent_active") return [`${waits}: ${reason.message}`, ""];
  return [`${waits}: ${reason.message}`, ""];
}

function concern(key: string, kind: string, text: string, detail: string, page: string, id: string, since: string): Concern {
  return { key, kind, text, detail, page, id, step: { action: "" }, since };
}
