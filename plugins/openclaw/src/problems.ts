/** Turn failures into messages that a model and its user can act on. */
import { AlreadyTerminal, ApiError, ConfigRefused, LeaseLost, RedKeyError, Unauthorized, Unreachable } from "redkey";

/** An error whose message reaches the caller of a tool: OpenClaw passes on errors with this name and hides others. */
export class ToolProblem extends Error {
  override name = "ToolInputError";
  readonly status = 400;
}

/** Describe a failure: what happened, and what to do next. */
export function explained(failure: unknown): unknown {
  if (failure instanceof LeaseLost || failure instanceof AlreadyTerminal) {
    return new ToolProblem(
      `${failure.detail} Your claim has ended: your further work on this task changes nothing. Call redkey_claim_next for other work.`,
    );
  }
  if (failure instanceof Unauthorized) {
    return new ToolProblem(
      `RedKey refused the key (${failure.detail}). Ask the user to check plugins.entries.redkey.config.apiKey.`,
    );
  }
  if (failure instanceof ApiError) {
    // The message lists every wrong field.
    return new ToolProblem(`${failure.message} (${failure.code})`);
  }
  if (failure instanceof Unreachable) {
    return new ToolProblem(
      `RedKey does not answer (${failure.message}). Nothing is lost: call again with the same arguments in a minute. ` +
        "If this continues, ask the user to check that the server runs and that plugins.entries.redkey.config.url names it.",
    );
  }
  if (failure instanceof ConfigRefused) {
    return new ToolProblem(`${failure.message}; or set url and apiKey in plugins.entries.redkey.config`);
  }
  return failure instanceof RedKeyError ? new ToolProblem(`${failure.message} (${failure.code})`) : failure;
}
