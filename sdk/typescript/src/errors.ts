/**
 * The errors of the SDK, as in the Python SDK. Every error has a stable `code`.
 *
 *     RedKeyError
 *     ├── ConfigRefused          no server or key was found, or not a usable one
 *     └── ClientError            a call that did not succeed
 *         ├── CallMisused        a call with wrong arguments, which was not sent
 *         ├── Unreachable        no answer came; TimedOut when it did not come in time
 *         ├── ReplyRefused       an answer that does not match the API
 *         ├── WorkInterrupted    a handler has to stop: lost claim, cancelled task, or a stopping worker
 *         ├── WorkFailed         the awaited task failed or was cancelled
 *         └── ApiError           the server refused: Unauthorized, Forbidden, NotFound, Invalid, Conflict (with
 *                                LeaseLost and AlreadyTerminal), CreditsExhausted, RateLimited, ServerFailed
 */

export class RedKeyError extends Error {
  // A literal, here and below, because minifiers rename classes.
  override name = "RedKeyError";

  constructor(
    message: string,
    readonly code: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

export class ConfigRefused extends RedKeyError {
  override name = "ConfigRefused";

  constructor(message: string) {
    super(message, "config_refused");
  }
}

export class ClientError extends RedKeyError {
  override name = "ClientError";
}

export class CallMisused extends ClientError {
  override name = "CallMisused";

  constructor(message: string, code = "call_misused") {
    super(message, code);
  }
}

export class Unreachable extends ClientError {
  override name = "Unreachable";

  constructor(message: string, cause?: unknown, code = "unreachable") {
    super(message, code, { cause });
  }
}

export class TimedOut extends Unreachable {
  override name = "TimedOut";

  constructor(message: string) {
    super(message, undefined, "timed_out");
  }
}

export class ReplyRefused extends ClientError {
  override name = "ReplyRefused";

  constructor(message: string, code = "reply_refused") {
    super(message, code);
  }
}

export class WorkInterrupted extends ClientError {
  override name = "WorkInterrupted";
}

export class WorkFailed extends ClientError {
  override name = "WorkFailed";

  constructor(message: string, code = "task_failed") {
    super(message, code);
  }
}

/** One problem of a request: its place (a JSON pointer or the name of a parameter) and a message. */
export interface Finding {
  code: string;
  pointer: string;
  message: string;
}

interface Problem {
  code?: string;
  detail?: string;
  title?: string;
  advice?: string;
  errors?: Array<{ code?: string; pointer?: string; path?: string; message?: string }>;
  error?: string;
  error_description?: string;
}

export class ApiError extends ClientError {
  override name = "ApiError";

  readonly detail: string;
  readonly advice: string;
  readonly errors: readonly Finding[];
  /** The request id that a proxy set. */
  readonly requestId: string;
  readonly retryAfterSeconds: number | undefined;
  /** If a batch took several requests: how many items were handled before this one was refused. */
  handledBefore = 0;
  /** Whether the same request may succeed later. */
  readonly passing: boolean;

  constructor(
    readonly status: number,
    problem: Problem,
    headers: Headers,
  ) {
    // The bus sends its code, and under `error` a text, such as the address of the server that hosts the session.
    const words = problem.code ? problem.error : undefined;
    const detail =
      problem.detail || problem.error_description || problem.title || words || `The server answered ${status}.`;
    const advice = problem.advice ?? "";
    const errors = (Array.isArray(problem.errors) ? problem.errors : []).map((one) => ({
      code: one.code ?? "",
      pointer: one.pointer || one.path || "",
      message: one.message ?? "",
    }));
    const named = errors.slice(0, 10).map((one) => `\n  ${one.pointer || "/"}: ${one.message} [${one.code}]`);
    super(
      `${/[.!?]$/.test(detail) ? detail : `${detail}.`} ${advice}`.trim() + named.join(""),
      problem.code || problem.error || `http_${status}`,
    );
    this.detail = detail;
    this.advice = advice;
    this.errors = errors;
    this.requestId = headers.get("x-request-id") ?? "";
    this.retryAfterSeconds = retryAfter(headers.get("retry-after"));
    // 5xx too: the request carries its idempotency key, so it takes effect once however often it is sent.
    this.passing = (status === 408 || status === 429 || status >= 500) && headers.get("x-should-retry") !== "false";
  }
}

export class Unauthorized extends ApiError {
  override name = "Unauthorized";
}
export class CreditsExhausted extends ApiError {
  override name = "CreditsExhausted";
}
export class Forbidden extends ApiError {
  override name = "Forbidden";
}
export class NotFound extends ApiError {
  override name = "NotFound";
}
export class Invalid extends ApiError {
  override name = "Invalid";
}
export class Conflict extends ApiError {
  override name = "Conflict";
}
export class LeaseLost extends Conflict {
  override name = "LeaseLost";
}
export class AlreadyTerminal extends Conflict {
  override name = "AlreadyTerminal";
}
export class RateLimited extends ApiError {
  override name = "RateLimited";
}
export class ServerFailed extends ApiError {
  override name = "ServerFailed";
}

const BY_CODE: Record<string, typeof ApiError> = { lease_lost: LeaseLost, already_terminal: AlreadyTerminal };
const BY_STATUS: Record<number, typeof ApiError> = {
  400: Invalid,
  401: Unauthorized,
  402: CreditsExhausted,
  403: Forbidden,
  404: NotFound,
  409: Conflict,
  413: Invalid,
  415: Invalid,
  422: Invalid,
  429: RateLimited,
};

/** Return the error for an error response, which may also come from a proxy. */
export function errorOf(status: number, headers: Headers, body: string): ApiError {
  let problem: Problem = {};
  try {
    const read: unknown = JSON.parse(body);
    if (typeof read === "object" && read !== null) problem = read;
  } catch {
    // The answer is a proxy's page: the status says enough.
  }
  const kind = BY_CODE[problem.code ?? ""] ?? BY_STATUS[status] ?? (status >= 500 ? ServerFailed : ApiError);
  return new kind(status, problem, headers);
}

/** Whether the same request may succeed later. */
export function isPassing(error: unknown): boolean {
  return error instanceof Unreachable || (error instanceof ApiError && error.passing);
}

/** Read a header of seconds or an HTTP date; anything else counts as absent. */
function retryAfter(text: string | null): number | undefined {
  if (!text?.trim()) return undefined;
  const seconds = /^[\d.]+$/.test(text.trim()) ? Number(text) : (Date.parse(text) - Date.now()) / 1000;
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds);
}
