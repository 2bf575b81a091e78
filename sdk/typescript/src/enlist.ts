/**
 * Enlisting: the agent and the queue of a worker, created if they are missing and the key is allowed to.
 *
 * A named agent is found by its name and remains after the run. Without a name, the agent belongs to this process only:
 * two processes of one script must not be one agent, because both would get the same claim.
 */
import { newKey, type CallOptions } from "./calls.js";
import type { RedKey } from "./client.js";
import { CallMisused, Conflict, Forbidden, NotFound } from "./errors.js";
import type { Api } from "./generated/api.js";

type Agent = Awaited<ReturnType<Api["agents"]["get"]>>;
export type Card = Record<string, unknown>;

const AGENT_ID = /^agt_[0-7][0-9A-HJKMNP-TV-Z]{25}$/;
const SLUG = /^[a-z0-9][a-z0-9._-]{0,31}$/;

/** The agent, its roles and its queue. */
export interface Enlistment {
  queue: string;
  /** An agent's id, a name (registered if it is new), or an Agent Card; without it, a new agent. */
  agent?: string | Card | undefined;
  /** Roles that the agent must have; they are granted if the key is allowed to. */
  roles?: readonly string[];
  /** The framework of the agent, for its registration. */
  framework?: string;
}

/** Return the agent with its roles, then find or create its queue. */
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

/** A client with the agent's own key, which `end` revokes. */
export interface Acting {
  rk: RedKey;
  end(options: CallOptions): Promise<unknown>;
}

/** Create a key for the agent; if the given key may create none, such as an agent's own key, use that key. */
export async function actAs(rk: RedKey, agentId: string): Promise<Acting> {
  try {
    const workspace = (await rk.workspaces.list({ own: true }).page()).items[0]?.workspaceId ?? "";
    const { apiKey, keyId } = await rk.keys.create(workspace, { scopes: ["agent"], agentId, name: "worker" });
    return { rk: rk.withKey(apiKey), end: (options) => rk.keys.revoke(workspace, keyId, options) };
  } catch (error) {
    if (!(error instanceof Forbidden || error instanceof NotFound)) throw error;
    return { rk, end: () => Promise.resolve() };
  }
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
    // Another process created it first.
    const other = error instanceof Conflict && (await bySlug(rk, agent));
    if (other) return other;
    throw error;
  }
}

async function bySlug(rk: RedKey, slug: string): Promise<Agent | undefined> {
  return (await rk.agents.list({ slug }).page()).items[0];
}

/** Return the agent of a card, found by its name if it was registered before, so a restart reuses the agent. */
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

/** Find something, or create it if it is missing; another process may create it first. */
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

/** Return the value with the keys of every object sorted, for comparison. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort()
      .map(([name, item]) => [name, sorted(item)]),
  );
}
