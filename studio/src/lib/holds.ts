/** Which agent held a task from when to when, how each hold ended, and what it cost: folded from events. */
import type { types } from "redkey";

export interface Hold {
  attempt: number;
  agentId: string;
  at: number;
  /** Undefined while the agent holds the task. */
  to: number | undefined;
  end: string;
  cost: number;
}

const ENDS = /^task\.(complete|failed|cancelled|released|lease_expired|blocked|stalled)$/;

/** The holds of each task among events in the order of the ledger, by task. */
export function holdsOf(events: readonly types.Event[]): Map<string, Hold[]> {
  const found = new Map<string, Hold[]>();
  for (const { type, timestamp, subject, data } of events) {
    const taskId = String(data["taskId"] ?? subject.id);
    const list = found.get(taskId) ?? [];
    const last = list.at(-1);
    if (type === "task.claimed") {
      list.push({ attempt: Number(data["attempt"] ?? 1), agentId: String(data["agentId"] ?? ""), at: Date.parse(timestamp), to: undefined, end: "held", cost: 0 });
      found.set(taskId, list);
    } else if (last && type === "task.usage_reported") last.cost += Number(data["costUsd"] ?? 0);
    else if (last?.end === "held" && ENDS.test(type)) [last.to, last.end] = [Date.parse(timestamp), type.slice(5).replace("_", " ")];
  }
  return found;
}
