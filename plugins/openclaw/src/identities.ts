/**
 * The agents: one RedKey agent for each OpenClaw agent of this gateway, each with its own key.
 *
 * The ledger must name the agent and not the person who installed the plugin. The configured key registers the agents
 * with their Agent Cards. Their own keys are stored in the gateway's state directory, readable only by its user.
 */
import { randomBytes } from "node:crypto";
import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { dirname, join } from "node:path";
import { Forbidden, NotFound, RedKey, type Card } from "redkey";
import type { Config } from "./config.js";
import { ToolProblem } from "./problems.js";

/** The log of the gateway. */
export interface Log {
  info(message: string): void;
  warn(message: string): void;
}

export interface Identity {
  /** The id of the OpenClaw agent. */
  name: string;
  /** The id of the RedKey agent. */
  agentId: string;
  /** A client with this agent's key. */
  rk: RedKey;
  /** The agent's queue if a call names none. */
  queue: string;
}

interface Known {
  agentId: string;
  apiKey: string;
}

interface State {
  gateway: string;
  /** By server and OpenClaw agent. */
  servers: Record<string, Record<string, Known>>;
}

// A tool call must end before its caller's timeout; the heartbeats of claims have their own limits.
const CALLS = { timeoutSeconds: 15, maxRetries: 2 };

export class Identities {
  readonly #file: string;
  readonly #found = new Map<string, Promise<Identity>>();
  #client: RedKey | undefined;

  constructor(
    readonly config: Config,
    stateDirectory: string,
    readonly log: Log,
  ) {
    this.#file = join(stateDirectory, "redkey", "agents.json");
  }

  /** The client with the configured key: it registers agents and creates tasks. */
  get client(): RedKey {
    this.#client ??= this.#connect(this.config.apiKey);
    return this.#client;
  }

  /** The RedKey agent of an OpenClaw agent, registered on first use. */
  of(name: string): Promise<Identity> {
    let found = this.#found.get(name);
    if (!found) {
      found = this.#identify(name);
      this.#found.set(name, found);
      // The next call retries a failed registration.
      found.catch(() => this.#found.delete(name));
    }
    return found;
  }

  /** The server refused an agent's key: create a new one at the next call. */
  forget(name: string): void {
    this.#found.delete(name);
    if (this.config.agents?.[name]?.apiKey) return;
    const state = this.#read();
    const known = state.servers[this.client.url];
    if (!known?.[name]) return;
    known[name].apiKey = "";
    this.#write(state);
  }

  async #identify(name: string): Promise<Identity> {
    const own = this.config.agents?.[name] ?? {};
    const queue = own.queue ?? this.config.queue ?? "default";
    if (own.agentId && own.apiKey) return { name, queue, agentId: own.agentId, rk: this.#connect(own.apiKey) };
    const known = await this.#register(name, queue);
    return { name, queue, agentId: known.agentId, rk: this.#connect(known.apiKey) };
  }

  async #register(name: string, queue: string): Promise<Known> {
    const state = this.#read();
    const before = state.servers[this.client.url]?.[name];
    const card = this.#card(name, this.config.gateway ?? state.gateway);
    const roles = this.config.agents?.[name]?.roles ?? this.config.roles ?? [];
    const enlistment = { queue, roles, framework: "openclaw" };
    let agentId: string;
    try {
      agentId = await this.client.enlist({ ...enlistment, agent: before?.agentId ?? card });
      if (before) await this.#renewCard(agentId, card);
    } catch (error) {
      if (!before || !(error instanceof NotFound)) throw error;
      // The server does not know this agent any more, because its data directory was replaced.
      agentId = await this.client.enlist({ ...enlistment, agent: card });
    }
    const kept = before?.agentId === agentId && before.apiKey;
    const known = { agentId, apiKey: kept || (await this.#newKey(agentId)) };
    const fresh = this.#read();
    fresh.servers[this.client.url] = { ...fresh.servers[this.client.url], [name]: known };
    this.#write(fresh);
    this.log.info(`OpenClaw agent ${name} is the RedKey agent ${agentId}`);
    return known;
  }

  #card(name: string, gateway: string): Card {
    const capabilities = this.config.agents?.[name]?.capabilities ?? this.config.capabilities ?? [];
    return {
      name: `${name}@${gateway}`,
      description: `OpenClaw agent ${name} of the gateway ${gateway}`,
      version: "1",
      skills: capabilities.map((id) => ({ id, name: id, description: id, tags: [id] })),
    };
  }

  async #renewCard(agentId: string, card: Card): Promise<void> {
    const { card: registered } = await this.client.agents.get(agentId);
    if (JSON.stringify(registered?.["skills"] ?? []) === JSON.stringify(card["skills"])) return;
    await this.client.agents.update(agentId, { agentCard: card });
  }

  async #newKey(agentId: string): Promise<string> {
    // An operator sees several workspaces; the agent is in one of them.
    for await (const { workspaceId } of this.client.workspaces.list()) {
      try {
        const name = "OpenClaw gateway";
        return (await this.client.keys.create(workspaceId, { scopes: ["agent"], agentId, name })).apiKey;
      } catch (error) {
        if (error instanceof Forbidden) break;
        if (!(error instanceof NotFound)) throw error;
      }
    }
    throw new ToolProblem(
      `The configured key may not create a key for the agent ${agentId}. Ask the user for an admin key in ` +
        "plugins.entries.redkey.config.apiKey, or for agentId and apiKey of this agent under its `agents`.",
    );
  }

  #connect(apiKey: string | undefined): RedKey {
    const { url, data } = this.config;
    const server = this.#client?.url ?? url;
    return new RedKey({
      ...CALLS,
      ...(server && { url: server }),
      ...(data && { data }),
      ...(apiKey && { apiKey }),
      log: (message) => this.log.warn(message),
    });
  }

  #read(): State {
    try {
      return JSON.parse(readFileSync(this.#file, "utf8")) as State;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") {
        throw new ToolProblem(
          `${this.#file} cannot be read (${String(error)}): remove it to register the agents again.`,
        );
      }
    }
    // Two gateways on one machine must not use the same agent names.
    const host = hostname().split(".")[0]?.slice(0, 12) || "gateway";
    const state = { gateway: `${host}-${randomBytes(2).toString("hex")}`, servers: {} };
    this.#write(state);
    return state;
  }

  /** Replace the file atomically, so that a crash leaves the old one intact. */
  #write(state: State): void {
    mkdirSync(dirname(this.#file), { recursive: true, mode: 0o700 });
    const draft = `${this.#file}.${process.pid}`;
    writeFileSync(draft, `${JSON.stringify(state, null, 2)}\n`, { mode: 0o600 });
    chmodSync(draft, 0o600);
    renameSync(draft, this.#file);
  }
}
