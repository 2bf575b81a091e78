/** What needs a human: every cause by the server's own explanation, with the action that removes it. */
import type { types } from "redkey";
import { bareName, plural } from "./format";
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

// Reasons that pass by themselves: an agent will come, or a task will end. A task that can never end has its own line.
const PASSING = new Set(["completed", "not_claimed", "all_saturated", "parallel_limit", "agents_paused", "unmet_dependency"]);
const MOST_EXPLAINED = 25;

/** Everything that needs a human now, the oldest first. */
export async function concerns(world: World): Promise<Concern[]> {
  const found: Concern[] = [];
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
  const failed = world.tasks.inState(["failed", "blocked"], { most: MOST_EXPLAINED });
  const explained = await Promise.all(samples(failed, world.tasks.each(["available", "created"])).map((group) => explain(world, group)));
  found.push(...explained.flat());
  return found.sort((a, b) => (a.since < b.since ? -1 : 1));
}

/** Failed and blocked tasks one by one; tasks of one queue that are not claimed and need the same roles as one group. */
function samples(failed: LiveTask[], unclaimed: Iterable<LiveTask>): LiveTask[][] {
  const groups = new Map<string, LiveTask[]>();
  for (const task of unclaimed) {
    const like = task.state === "created" ? task.taskId : `${task.queueId} ${task.roles.join()} ${task.workflowId}`;
    const group = groups.get(like);
    if (group) group.push(task);
    else if (groups.size < MOST_EXPLAINED) groups.set(like, [task]);
  }
  return [...failed.map((task) => [task]), ...groups.values()].slice(0, MOST_EXPLAINED);
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
  return reasons.filter((reason) => !PASSING.has(reason.code)).map((reason) => {
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
