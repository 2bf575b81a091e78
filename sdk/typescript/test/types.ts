/** What the compiler must take and refuse; nothing here is run. */
import { RedKey, type ClaimNextOutcome, type types } from "../src/index.js";

const rk = new RedKey();

/** A claim narrows by `status`, and a switch over it is exhaustive. */
export function told(outcome: ClaimNextOutcome): string {
  switch (outcome.status) {
    case "claimed":
      return outcome.claimId;
    case "missed":
      return outcome.winningAgentId;
    case "rejected":
      return outcome.reason;
    case "no_tasks":
      return outcome.queueId;
    default:
      return outcome satisfies never;
  }
}

export async function taken(): Promise<void> {
  const found = await rk.queues.claimNext("q", { agentId: "a" });
  // @ts-expect-error a claim that was not won has no claim id
  void found.claimId;
  const task: types.Task = await rk.tasks.get("t");
  void task.state;
  for await (const queue of rk.queues.list({ limit: 5 })) void queue.queueId;
  for await (const event of rk.events.follow({ types: ["task.created"] })) void event.sequence;
  await rk.claims.start("c", {}, { signal: AbortSignal.timeout(1) });
}

export async function refused(): Promise<void> {
  // @ts-expect-error a task needs a title
  await rk.tasks.create("q", {});
  // @ts-expect-error there is no such field
  await rk.tasks.create("q", { title: "T", colour: "red" });
  // @ts-expect-error an id is text
  await rk.tasks.get(7);
  // @ts-expect-error the state of a listing is one of the known ones
  rk.tasks.list("q", { state: "nowhere" });
  // @ts-expect-error there is no such operation
  await rk.tasks.destroy("t");
  // @ts-expect-error a claim needs an agent
  await rk.hold("q", {});
}
