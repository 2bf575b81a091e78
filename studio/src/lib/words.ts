/** Events in words: who did what to which task. */
import type { types } from "redkey";
import { bareName, shortId } from "./format";
import type { World } from "./world.svelte";

const VERBS: Record<string, string> = {
  "agent.deactivated": "deactivated",
  "agent.heartbeat": "sent a heartbeat for",
  "agent.lost": "lost contact with",
  "agent.registered": "registered",
  "agent.updated": "updated",
  "artifact.ready": "added an artifact to",
  "artifact.superseded": "replaced an artifact of",
  "checkpoint.anchored": "anchored a checkpoint of",
  "content.erased": "erased a text of",
  "credits.granted": "granted credits to",
  "credits.priced": "set the prices of",
  "definition.published": "published the plan",
  "gate.approved": "approved",
  "gate.opened": "requested approval of",
  "gate.rejected": "sent back",
  "inbox.read": "read a message to",
  "inbox.sent": "sent a message to",
  "key.created": "created the key",
  "key.recovered": "recovered the key",
  "key.revoked": "revoked the key",
  "ledger.restored": "restored the ledger of",
  "message.added": "commented on",
  "party.added": "added the account",
  "party.removed": "removed the account",
  "phase.completed": "completed the phase",
  "phase.created": "created the phase",
  "phase.updated": "updated the phase",
  "project.completed": "completed the project",
  "project.created": "created the project",
  "project.updated": "updated the project",
  "push.removed": "removed a push notification of",
  "push.set": "set a push notification of",
  "queue.claim_requested": "asked for a task of the queue",
  "queue.created": "created the queue",
  "queue.updated": "updated the queue",
  "review.concern": "raised a concern about",
  "role.created": "created the role",
  "role.granted": "granted",
  "role.removed": "removed the role",
  "role.revoked": "revoked",
  "role.updated": "updated the role",
  "signer.added": "added the signer",
  "signer.retired": "retired the signer",
  "task.available": "queued",
  "task.blocked": "reported a block on",
  "task.cancelled": "cancelled",
  "task.claim_attempted": "tried to claim",
  "task.claim_missed": "missed",
  "task.claim_rejected": "was rejected for",
  "task.claimed": "claimed",
  "task.complete": "completed",
  "task.created": "created",
  "task.failed": "failed",
  "task.lease_expired": "lost its lease on",
  "task.lease_extended": "extended its lease on",
  "task.plan.created": "wrote a plan for",
  "task.progress": "reported progress on",
  "task.released": "released",
  "task.stalled": "stalled on",
  "task.started": "started",
  "task.unblocked": "unblocked",
  "task.usage_reported": "reported the cost of",
  "topic.assigned": "assigned the topic of",
  "topic.retired": "retired the topic of",
  "webhook.removed": "removed the webhook",
  "webhook.set": "set the webhook",
  "workflow.cancelled": "cancelled the run",
  "workflow.completed": "completed the run",
  "workflow.failed": "failed the run",
  "workflow.paused": "paused the run",
  "workflow.resumed": "resumed the run",
  "workflow.started": "started the run",
  "workspace.created": "created the workspace",
  "workspace.policy_set": "changed a policy of",
  "workspace.rules_raised": "raised the rules of",
};

/** An event as a sentence in three parts: who, what, and about what with its address. */
export interface Sentence {
  who: string;
  verb: string;
  about: string;
  /** The page that shows it; empty when there is none. */
  page: string;
  id: string;
}

/** An event in words, by its ids alone: for readers without a login. */
export function plainSentence({ type, actor, subject }: Pick<types.Event, "type" | "actor" | "subject">): string {
  const who = actor.type === "system" ? "RedKey" : `${actor.type === "agent" ? "Agent" : actor.type === "human" ? "A human" : actor.type} ${shortId(actor.id)}`;
  return `${who} ${VERBS[type] ?? type} ${/\b(queue|role|run|key|plan|workspace|account|phase|project|signer)$/.test(VERBS[type] ?? "") ? "" : `${subject.type} `}${shortId(subject.id)}`;
}

export function sentence(world: World, event: types.Event): Sentence {
  const data = event.data as Record<string, string | undefined>;
  const verb = VERBS[event.type] ?? event.type.replace(/^\w+\./, "").replaceAll("_", " ");
  const acts = data["agentId"] && /^(task|artifact|gate|message|review)\./.test(event.type) && !/gate\.(approved|rejected)/.test(event.type);
  const who = acts ? world.agentName(data["agentId"] ?? "") : actor(world, event.actor);
  const taskId = data["taskId"] ?? data["refTaskId"] ?? (event.subject.type === "task" ? event.subject.id : "");
  if (event.type.startsWith("inbox.")) {
    return { who, verb, about: party(world, data["to"] ?? ""), page: taskId ? "task" : "", id: taskId };
  }
  if (event.type === "role.granted" || event.type === "role.revoked") {
    const about = `${bareName(data["roleId"] ?? "")} ${verb === "granted" ? "to" : "from"} ${world.agentName(data["agentId"] ?? "")}`;
    return { who, verb, about, page: "agent", id: data["agentId"] ?? "" };
  }
  if (taskId) return { who, verb, about: world.title(taskId), page: "task", id: taskId };
  const { type, id } = event.subject;
  if (type === "agent") return { who, verb, about: world.agentName(id), page: "agent", id };
  if (type === "workflow") return { who, verb, about: world.runs.get(id)?.name || shortId(id), page: "run", id };
  if (type === "queue") return { who, verb, about: bareName(id), page: "queue", id };
  return { who, verb, about: bareName(shortId(id)), page: "", id: "" };
}

/** Who acted. */
export function actor(world: World, party: types.Party): string {
  if (party.type === "agent") return world.agentName(party.id);
  if (party.type === "system") return "RedKey";
  return party.type === "human" ? "a human" : `${party.type} ${shortId(party.id)}`;
}

function party(world: World, to: string): string {
  if (to.startsWith("agt_")) return world.agentName(to);
  return to === "human" ? "humans" : bareName(to);
}

/** The colour of an event: good, bad, or a warning. */
export function tone(type: string): string {
  if (/complete|claimed|approved|granted/.test(type)) return "good";
  if (/failed|lost|expired|rejected|cancelled|revoked|stalled/.test(type)) return "bad";
  if (/blocked|missed|opened|paused/.test(type)) return "warn";
  return "";
}
