/** The claim as a model sees it: the task with its inputs, or a sentence on what to do instead. */
import type { Hold, Missed, NoTasks, Rejected } from "redkey";

// The answer contains the artifacts of earlier tasks, because a model cannot fetch them.
const ARTIFACT_CHARACTERS = 16_000;
const ALL_CHARACTERS = 64_000;

/** A won claim. */
export async function shownTask(hold: Hold, before: readonly Hold[]): Promise<Record<string, unknown>> {
  const { upstream = [], ...task } = hold.task;
  const outputs = task.outputs?.length ? ` Give its outputs as fields of "output": ${task.outputs.join(", ")}.` : "";
  const others = before.filter((other) => other.claimId !== hold.claimId);
  return {
    status: "claimed",
    claimId: hold.claimId,
    task,
    ...(upstream.length && { upstream: await shownUpstream(hold) }),
    ...(others.length && { alsoHeld: others.map((other) => ({ claimId: other.claimId, title: other.task.title })) }),
    next:
      "You hold this task, and its lease is kept alive for you. Do the work, then call redkey_complete." +
      `${outputs} Call redkey_block to ask a human, redkey_fail when it cannot be done.`,
  };
}

/** A claim that was not won. */
export function shownMiss(found: Missed | Rejected | NoTasks): Record<string, unknown> {
  const sentence = {
    missed: () =>
      `Another agent (${(found as Missed).winningAgentId}) won this task: do not try it again. ` +
      "Call redkey_claim_next for another one.",
    rejected: () =>
      `You may not claim this: ${(found as Rejected).detail || (found as Rejected).reason}. ` +
      "Do not try it again; tell the user what is missing, or claim other work.",
    no_tasks: () =>
      `There is nothing for you in ${(found as NoTasks).queueId} now. Call again later, or with waitSeconds.`,
  }[found.status];
  const { next, ...rest } = found;
  return { ...rest, advice: next, next: sentence() };
}

async function shownUpstream(hold: Hold): Promise<unknown[]> {
  let left = ALL_CHARACTERS;
  const shown = [];
  for (const { name, planTaskId: from, mediaType, bytes, uri, sha256, erased } of hold.task.upstream ?? []) {
    const isText = !uri && !erased && /^($|text\/|application\/([\w.+-]+\+)?json)/.test(mediaType ?? "");
    // The claim is held: an unreadable artifact must not hide the rest from the model.
    const whole =
      isText && left > 0
        ? await read(hold, sha256).catch((error: unknown) => `It cannot be read now: ${String(error)}`)
        : undefined;
    const content = whole?.slice(0, Math.min(left, ARTIFACT_CHARACTERS));
    left -= content?.length ?? 0;
    const isCut = content?.length !== whole?.length;
    shown.push({
      ...{ name, from, mediaType, bytes },
      ...(content === undefined ? { sha256, uri, erased } : { content, ...(isCut && { cutAt: content.length }) }),
    });
  }
  return shown;
}

async function read(hold: Hold, sha256: string): Promise<string> {
  return new TextDecoder().decode(await hold.rk.content.get(sha256));
}
