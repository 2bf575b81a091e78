/**
 * Enlisting: who a worker is and where it works, created when it is missing and the key may.
 *
 * A named agent is found by its name and stays. Without a name the agent is this process alone: two processes of one
 * script must not be one agent, because both would be told of the same claim.
 */
import { newKey } from "./calls.js";
import type { RedKey } from "./client.js";
import { CallMisused, Conflict, Forbidden, NotFound } from "./errors.js";
import type { Api } from "./generated/api.js";

type Agent = Awaited<ReturnType<Api["agents"]["get"]>>;
export type Card = Record<string, unknown>;

const AGENT_ID = /^agt_[0-7][0-9A-HJKMNP-TV-Z]{25}$/;
const SLUG = /^[a-z0-9][a-z0-9._-]{0,31}$/;

/** Who works where. */
export interface Enlistment {
  queue: string;
  /** An agent's id, a name (registered when it is new), or an Agent Card; else a new agent. */
  agent?: string | Card | undefined;
  /** Roles that the agent must have; they are granted when the key may. */
  roles?: readonly string[];
  /** What the agent runs on, as its registration says. */
  framework?: string;
}

/** The agent that a worker acts as, with its roles, before its queue. */
export async function enlist(
  rk: RedKey,
  { agent, queue, roles = [], framework = "redkey" }: Enlistment,
): Promise<string> {
  let found: Agent;
  try {
    found = await findAgent(rk, agent, queue, framework);
    if (!found.active) found = await rk.agents.update(found.agentId, { active: true });
  } catch (error) {
    if (!(error instanceof Forbidden)) throw error;
    const said = `this key may not register or activate an agent (${error.detail}): name one that is active, as in agent: "agt_..."`;
    throw new CallMisused(said, "agent_missing");
  }
  for (const role of roles) await grant(rk, found, `role_${role.replace(/^roles\./, "").replace(/^role_/, "")}`);
  await findQueue(rk, queue);
  return found.agentId;
}

async function findAgent(
  rk: RedKey,
  agent: string | Card | undefined,
  queue: string,
  framework: string,
): Promise<Agent> {
  if (typeof agent === "object") return byCard(rk, agent, framework);
  if (agent === undefined) {
    return register(rk, `${slugOf(queue).slice(0, 20) || "worker"}-${newKey().slice(0, 8)}`, framework);
  }
  if (AGENT_ID.test(agent)) return rk.agents.get(agent);
  if (!SLUG.test(agent)) {
    const said = "give its id, a name of up to 32 lower-case letters, digits, dots and dashes, or a card";
    throw new CallMisused(`"${agent}" is no agent: ${said}`, "agent_invalid");
  }
  const known = await bySlug(rk, agent);
  if (known) return known;
  try {
    return await register(rk, agent, framework);
  } catch (error) {
    // Another process was faster.
    const other = error instanceof Conflict && (await bySlug(rk, agent));
    if (other) return other;
    throw error;
  }
}

async function bySlug(rk: RedKey, slug: string): Promise<Agent | undefined> {
  return (await rk.agents.list({ slug }).page()).items[0];
}

/** The agent of a card: found by its name when one was registered before, so that a restart is no new agent. */
async function byCard(rk: RedKey, card: Card, framework: string): Promise<Agent> {
  const identity = card["identity"] as { slug?: string } | undefined;
  const slug = slugOf(String(identity?.slug ?? card["name"]));
  const known = SLUG.test(slug) ? await bySlug(rk, slug) : undefined;
  const same =
    known && JSON.stringify(sorted((await rk.agents.get(known.agentId)).card)) === JSON.stringify(sorted(card));
  return same ? known : rk.agents.register({ agentCard: card, framework });
}

function register(rk: RedKey, name: string, framework: string): Promise<Agent> {
  const agentCard = { name, description: "A worker of the RedKey TypeScript SDK", version: "1" };
  return rk.agents.register({ agentCard, framework });
}

async function grant(rk: RedKey, agent: Agent, role: string): Promise<void> {
  if (agent.roles.includes(role)) return;
  try {
    await created(
      () => rk.roles.get(role),
      () => rk.roles.create({ name: role.slice("role_".length), id: role }),
    );
    await rk.roles.grant(role, agent.agentId);
  } catch (error) {
    if (!(error instanceof Forbidden)) throw error;
    const said = `ask an admin to run \`redkey role grant ${role} ${agent.agentId}\``;
    throw new CallMisused(`agent ${agent.slug} lacks ${role}, and this key may not grant it: ${said}`, "missing_role");
  }
}

async function findQueue(rk: RedKey, queue: string): Promise<void> {
  try {
    await created(
      () => rk.queues.get(queue),
      () => rk.queues.create({ name: queue.replace(/^(queue_|queues\.)/, "") }),
    );
  } catch (error) {
    if (!(error instanceof Forbidden)) throw error;
    const said = `there is no queue ${queue}, and this key may not create it: run \`redkey queue create ${queue}\``;
    throw new CallMisused(said, "queue_not_found");
  }
}

/** Look for something and create it when it is not there; another process may be faster. */
async function created(look: () => Promise<unknown>, create: () => Promise<unknown>): Promise<void> {
  try {
    await look();
  } catch (error) {
    if (!(error instanceof NotFound)) throw error;
    await create().catch((refused: unknown) => {
      if (!(refused instanceof Conflict)) throw refused;
    });
  }
}

function slugOf(name: string): string {
  return name
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 32);
}

/** The same value with the keys of every object in order, to be compared. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort()
      .map(([name, item]) => [name, sorted(item)]),
  );
}
