/**
 * The entry of the plugin: RedKey's tools for OpenClaw agents, and the service that keeps their claims alive.
 *
 * OpenClaw may register a plugin several times in one process (to discover tools, to run them), so the state of a
 * gateway is shared in the process, by its state directory and configuration.
 */
import { listAgentIds } from "openclaw/plugin-sdk/agent-scope-runtime";
import { defineToolPlugin } from "openclaw/plugin-sdk/tool-plugin";
import { configSchema, parseConfig } from "./config.js";
import { Gateway } from "./gateway.js";
import { invoke } from "./invoke.js";
import { TOOLS } from "./tools.js";

type Api = Parameters<ReturnType<typeof defineToolPlugin>["register"]>[0];

const PROCESS = Symbol.for("redkey.openclaw.gateways");
const shared = globalThis as { [PROCESS]?: Map<string, Gateway> };
const gateways = (shared[PROCESS] ??= new Map<string, Gateway>());

/** The gateway of this process. After a stop it refuses calls until the service starts again. */
function gatewayOf(api: Api, starts = false): Gateway {
  const stateDirectory = api.runtime.state.resolveStateDir();
  const name = JSON.stringify([stateDirectory, api.pluginConfig]);
  let gateway = gateways.get(name);
  if (!gateway || (starts && gateway.stopping.aborted)) {
    gateway = new Gateway(parseConfig(api.pluginConfig), stateDirectory, api.logger);
    gateways.set(name, gateway);
  }
  return gateway;
}

const entry = defineToolPlugin({
  id: "redkey",
  name: "RedKey",
  description: "A shared verified queue for agents across gateways, machines and frameworks, with receipts.",
  configSchema,
  tools: (declare) =>
    TOOLS.map((tool) => {
      const { name, label, description, parameters } = tool;
      return declare({
        name,
        label,
        description,
        parameters,
        factory: ({ api, toolContext }) => ({
          name,
          label,
          description,
          parameters,
          async execute(_toolCallId, params, signal) {
            const agent = toolContext.agentId ?? /^agent:([^:]+):/.exec(toolContext.sessionKey ?? "")?.[1] ?? "main";
            const details = await invoke(tool, gatewayOf(api), agent, params, signal);
            return { content: [{ type: "text", text: JSON.stringify(details) }], details };
          },
        }),
      });
    }),
});

const registerTools = entry.register;

entry.register = (api) => {
  registerTools(api);
  api.registerService({
    id: "redkey",
    start(context) {
      // Not awaited, because a server that is not running yet must not delay the gateway.
      void gatewayOf(api, true).start(listAgentIds(context.config));
    },
    stop: () => gatewayOf(api).stop(),
  });
};

export default entry;
