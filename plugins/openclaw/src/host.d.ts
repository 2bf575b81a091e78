/**
 * The part of OpenClaw's types that this plugin uses, so that it compiles without OpenClaw.
 *
 * The opt-in test of the gateway compiles against the types of the pinned version instead of this file.
 */
declare module "openclaw/plugin-sdk/agent-scope-runtime" {
  /** The ids of the agents that a configuration has. */
  export function listAgentIds(config: object): string[];
}

declare module "openclaw/plugin-sdk/tool-plugin" {
  interface ToolResult {
    content: Array<{ type: "text"; text: string }>;
    details: unknown;
  }

  interface AgentTool {
    name: string;
    label: string;
    description: string;
    parameters: object;
    execute(toolCallId: string, params: unknown, signal?: AbortSignal): Promise<ToolResult>;
  }

  interface ToolContext {
    agentId?: string;
    sessionKey?: string;
  }

  interface ServiceContext {
    config: object;
    stateDir: string;
    logger: { info(message: string): void; warn(message: string): void };
  }

  interface PluginApi {
    runtime: { state: { resolveStateDir(): string } };
    logger: { info(message: string): void; warn(message: string): void };
    pluginConfig?: Record<string, unknown>;
    registerService(service: {
      id: string;
      start(context: ServiceContext): void | Promise<void>;
      stop(context: ServiceContext): void | Promise<void>;
    }): void;
  }

  interface ToolDeclaration {
    name: string;
    label: string;
    description: string;
    parameters: object;
    factory(context: { api: PluginApi; toolContext: ToolContext }): AgentTool;
  }

  interface PluginEntry {
    register(api: PluginApi): void;
  }

  export function defineToolPlugin(definition: {
    id: string;
    name: string;
    description: string;
    configSchema: object;
    tools(tool: (declaration: ToolDeclaration) => ToolDeclaration): readonly ToolDeclaration[];
  }): PluginEntry;
}
