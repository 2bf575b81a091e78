/** One tool call: check the arguments, run the tool as an agent, and explain errors. */
import { createHash } from "node:crypto";
import { Unauthorized } from "redkey";
import type { Gateway } from "./gateway.js";
import { explained, ToolProblem } from "./problems.js";
import { findings } from "./schema.js";
import type { Tool } from "./tool.js";

const PATIENCE_SECONDS = 45;

/** Check the arguments of a call, run it, and explain what went wrong. */
export async function invoke(
  tool: Tool,
  gateway: Gateway,
  agent: string,
  given: unknown,
  signal?: AbortSignal,
): Promise<Record<string, unknown>> {
  const args = given ?? {};
  const wrong = findings(tool.parameters, args);
  if (wrong.length) throw new ToolProblem(`${wrong.join(" ")} Correct the arguments of ${tool.name} and call again.`);
  const patience = AbortSignal.timeout(PATIENCE_SECONDS * 1000);
  const options = { signal: signal ? AbortSignal.any([signal, patience]) : patience };
  const { claimId: _, ...rest } = args as { claimId?: string };
  const key = createHash("sha256")
    .update(JSON.stringify([tool.name, rest]))
    .digest("hex")
    .slice(0, 32);
  try {
    const identity = await gateway.identities.of(agent);
    return await tool.run(args, { gateway, identity, signal, options, key });
  } catch (error) {
    if (error instanceof Unauthorized && !tool.produces) gateway.identities.forget(agent);
    if (patience.aborted && error === patience.reason) {
      throw new ToolProblem(
        `RedKey did not answer in ${PATIENCE_SECONDS} seconds. Nothing is lost: call again with the same arguments.`,
      );
    }
    throw explained(error);
  }
}
