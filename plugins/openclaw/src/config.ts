/** The configuration of the plugin, `plugins.entries.redkey.config` of the gateway. */
import { ToolProblem } from "./problems.js";
import { findings, type Schema } from "./schema.js";

/** How one OpenClaw agent works. */
export interface AgentConfig {
  roles?: string[];
  capabilities?: string[];
  queue?: string;
  agentId?: string;
  apiKey?: string;
}

export interface Config extends Omit<AgentConfig, "agentId"> {
  url?: string;
  data?: string;
  gateway?: string;
  leaseSeconds?: number;
  agents?: Record<string, AgentConfig>;
}

const names = (description: string): Schema => ({
  type: "array",
  items: { type: "string", minLength: 1 },
  description,
});
const text = (description: string): Schema => ({ type: "string", minLength: 1, description });

const shared = {
  roles: names("Roles for the agent, granted if the key is allowed to; tasks require roles."),
  capabilities: names("What the agent can do, as its Agent Card says; tasks may ask for capabilities."),
  queue: text("The queue for tool calls that name none; `default` by default."),
} satisfies Record<string, Schema>;

export const configSchema = {
  type: "object",
  additionalProperties: false,
  properties: {
    url: text("The RedKey server, such as http://127.0.0.1:8700; by default REDKEY_URL, else the one that runs in `data`."),
    apiKey: text(
      "A key of the workspace. With the scope admin it registers the agents; creating tasks needs produce or admin. " +
        "By default REDKEY_API_KEY, else the key in `data`.",
    ),
    data: text("The data directory of a RedKey server on this machine."),
    gateway: text("The name of this gateway in the names of its agents, unique among your gateways."),
    leaseSeconds: {
      type: "integer",
      minimum: 5,
      maximum: 86_400,
      description: "How long a killed gateway keeps its tasks, in seconds; 60 by default.",
    },
    ...shared,
    agents: {
      type: "object",
      description: "Settings of single agents, by the id of the OpenClaw agent.",
      additionalProperties: {
        type: "object",
        additionalProperties: false,
        properties: {
          ...shared,
          agentId: text("The RedKey agent to act as, together with `apiKey`, when the gateway has no admin key."),
          apiKey: text("The key of that agent, with the scope agent."),
        },
      },
    },
  },
} satisfies Schema;

/** The configuration after validation. */
export function parseConfig(given: unknown): Config {
  const wrong = findings(configSchema, given ?? {}, "The configuration");
  const agents = (given as Config | undefined)?.agents ?? {};
  for (const [name, { agentId, apiKey }] of wrong.length ? [] : Object.entries(agents)) {
    if (!agentId !== !apiKey) wrong.push(`"agents.${name}" must have both agentId and apiKey, or none of them.`);
  }
  if (wrong.length) throw new ToolProblem(`plugins.entries.redkey.config: ${wrong.join(" ")}`);
  return (given ?? {}) as Config;
}
