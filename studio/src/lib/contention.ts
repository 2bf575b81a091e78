/** How agents compete for the tasks of each role, counted attempt by attempt. */
import type { types } from "redkey";

/** One attempt to claim a task. */
export interface Attempt {
  sequence: number;
  at: string;
  taskId: string;
  agentId: string;
  outcome: Outcome;
  winner: string;
  reason: string;
}

export type Outcome = "won" | "missed" | "rejected";

/** How an attempt ended, by the type of its event. */
export const OUTCOMES: Record<string, Outcome> = {
  "task.claimed": "won",
  "task.claim_missed": "missed",
  "task.claim_rejected": "rejected",
};

/** The attempts among events, in their order. */
export function attemptsOf(events: readonly types.Event[]): Attempt[] {
  return events.flatMap(({ type, sequence, timestamp, data, subject }) => {
    const outcome = OUTCOMES[type];
    if (!outcome) return [];
    const text = (key: string): string => String(data[key] ?? "");
    return [{ sequence, at: timestamp, taskId: text("taskId") || subject.id, agentId: text("agentId"), outcome, winner: text("winningAgentId"), reason: text("reason") }];
  });
}

/** The attempts of one role. */
export interface RoleCount {
  role: string;
  won: number;
  missed: number;
  rejected: number;
  agents: Set<string>;
  /** Missed attempts of each hour of the day. */
  hours: number[];
}

/** Below this many attempts there is no answer. */
const ENOUGH = 10;

export class Contention {
  #roles = new Map<string, RoleCount>();

  add(attempt: Attempt, role: string): void {
    let row = this.#roles.get(role);
    if (!row) this.#roles.set(role, (row = { role, won: 0, missed: 0, rejected: 0, agents: new Set(), hours: Array<number>(24).fill(0) }));
    row[attempt.outcome]++;
    if (attempt.outcome === "missed") {
      const hour = new Date(attempt.at).getHours();
      row.hours[hour] = (row.hours[hour] ?? 0) + 1;
    }
    // Who may not have the task is no rival.
    if (attempt.outcome !== "rejected") row.agents.add(attempt.agentId);
  }

  /** The roles, the one with the most missed attempts first. */
  rows(): RoleCount[] {
    return [...this.#roles.values()].map((row) => ({ ...row })).toSorted((a, b) => b.missed - a.missed);
  }
}

/** The share of attempts that came too late. */
export const missedShare = (row: RoleCount): number => row.missed / Math.max(1, row.won + row.missed);

/** Whether a role has too many agents, in words. */
export function answer(row: RoleCount): { text: string; tone: string } {
  if (row.won + row.missed < ENOUGH) return { text: `Not enough claims to say (fewer than ${ENOUGH}).`, tone: "" };
  const share = missedShare(row);
  if (row.agents.size > 1 && share > 0.5) return { text: "Yes, too many: most attempts are missed.", tone: "bad" };
  if (row.agents.size > 1 && share > 0.2) return { text: "A few too many: agents often race for the same task.", tone: "warn" };
  return { text: "No, the number is about right.", tone: "good" };
}
