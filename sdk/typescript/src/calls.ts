/**
 * Calls: turn an operation of the table and its arguments into a request, and send it until it is answered.
 *
 * Retries, idempotency keys, timeouts, pages of lists and resuming streams are implemented here for all operations.
 */
import {
  ApiError,
  CallMisused,
  errorOf,
  isPassing,
  ReplyRefused,
  RedKeyError,
  TimedOut,
  Unreachable,
} from "./errors.js";
import type { Page } from "./generated/types.js";
import { Parser } from "./sse.js";

/** The options of a single call. */
export interface CallOptions {
  /** Ends the call: its promise is rejected with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** The longest silence of one try; 30 seconds by default. */
  timeoutSeconds?: number | undefined;
  /** The number of retries; 12 by default, which takes 30 seconds: enough for a server to restart. */
  maxRetries?: number | undefined;
  /** The idempotency key, under which the server does this once; random by default. */
  idempotencyKey?: string | undefined;
}

/** The server of the requests, and the key. */
export interface Connection {
  url: string;
  apiKey: string;
  fetch: typeof fetch;
  options: CallOptions;
}

interface Request {
  method: string;
  target: string;
  headers: Record<string, string>;
  body: BodyInit | undefined;
  accept: string;
  options: CallOptions;
  /** How long the server itself may wait before it answers. */
  waitSeconds: number;
}

const JSON_TYPE = "application/json";
const EVENT_STREAM = "text/event-stream";
const OCTETS = "application/octet-stream";
// The server sends something to followers every 15 seconds, so a stream that is silent for this long is broken.
const SILENCE_SECONDS = 45;
// With the shortest random pauses, this number of retries takes 31 seconds: enough for a server to restart.
const RETRIES = 12;
// If a server asks for a longer pause, throw the error: the caller knows better what to do in the meantime.
const LONGEST_RETRY_AFTER_SECONDS = 60;

/** Return a function that calls the operation described by a line of the table. */
export function operation(connection: Connection, line: string): (...args: unknown[]) => unknown {
  const words = line.split(" ");
  if (words.includes("stream")) return (...args) => follow(connection, () => build(connection, words, args));
  if (!words.includes("list")) return async (...args) => send(connection, build(connection, words, args));
  return (...args) =>
    new Pages((after) => send(connection, build(connection, words, args, after)) as Promise<Page<unknown>>);
}

/** A list whose pages are fetched while you iterate; `page()` fetches only the first page. */
export class Pages<Item> implements AsyncIterable<Item> {
  readonly #fetch: (after?: string) => Promise<Page<Item>>;

  constructor(fetch: (after?: string) => Promise<Page<Item>>) {
    this.#fetch = async (after) => {
      const page = await fetch(after);
      if (!Array.isArray(page.items)) throw new ReplyRefused("the answer is not a page of a list");
      return page;
    };
  }

  page(): Promise<Page<Item>> {
    return this.#fetch();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    let page = await this.#fetch();
    yield* page.items;
    while (page.next) {
      page = await this.#fetch(page.next);
      yield* page.items;
    }
  }
}

function build(connection: Connection, words: string[], args: unknown[], after?: string): Request {
  const [method = "", path = "", ...marks] = words;
  const places = path.split("{}");
  const ids = args.slice(0, places.length - 1);
  const rest = args.slice(places.length - 1);
  const data = marks.includes("octets") ? (rest.shift() as BodyInit) : undefined;
  const input = marks.includes("-") ? {} : given(rest.shift());
  const options = { ...connection.options, ...(rest[0] as CallOptions | undefined) };
  const fixed = Object.fromEntries(marks.filter((mark) => mark.includes("=")).map((mark) => mark.split("=")));
  const streams = marks.includes("stream");
  const accept = streams ? EVENT_STREAM : (marks.find((mark) => mark.includes("/")) ?? JSON_TYPE);
  const headers: Record<string, string> = { accept };
  // Browsers send their own user agent, and CORS would have to allow another header.
  if (!("document" in globalThis)) headers["user-agent"] = "redkey-typescript";
  if (!marks.includes("public")) headers["authorization"] = `Bearer ${connection.apiKey}`;
  let body: BodyInit | undefined = data;
  let query: Record<string, unknown> = { ...fixed, ...input, ...(after === undefined ? {} : { after }) };
  if (data !== undefined) {
    headers["content-type"] = OCTETS;
  } else if (marks.includes("form")) {
    [body, query] = [encodeQuery({ ...fixed, ...input }), {}];
    headers["content-type"] = "application/x-www-form-urlencoded";
  } else if (method !== "GET" && (method !== "DELETE" || Object.keys(input).length)) {
    [body, query] = [encodeBody(input), {}];
    headers["content-type"] = JSON_TYPE;
  }
  if (marks.includes("keyed") || (/POST|PATCH|DELETE/.test(method) && !marks.includes("unkeyed"))) {
    headers["idempotency-key"] = checkedKey(options.idempotencyKey) ?? newKey();
  }
  const target = places[0] + ids.map((id, index) => segment(id) + places[index + 1]).join("");
  const said = encodeQuery(query);
  const waitSeconds = streams ? 0 : Number(input["wait"]) || 0;
  return { method, target: target + (said && `?${said}`), headers, body, accept, options, waitSeconds };
}

/** Drop null and undefined fields, like None in Python. */
function given(input: unknown): Record<string, unknown> {
  return Object.fromEntries(Object.entries(input ?? {}).filter(([, value]) => value != null));
}

/** Encode an id for a path; refuse one that is empty, `.` or `..`, because it would name another resource. */
function segment(id: unknown): string {
  if (typeof id !== "string" || id === "" || id === "." || id === "..") {
    throw new CallMisused(`${JSON.stringify(id)} is not an id`, "id_invalid");
  }
  return escaped(encodeURIComponent(id));
}

/** Also encode what Python encodes and JavaScript does not, so that both SDKs send the same bytes. */
function escaped(text: string): string {
  return text.replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
}

function encodeQuery(fields: Record<string, unknown>): string {
  const word = (value: unknown) => escaped(encodeURIComponent(String(value))).replaceAll("%20", "+");
  return Object.entries(fields)
    .map(([name, value]) => `${word(name)}=${word(value)}`)
    .join("&");
}

function encodeBody(fields: Record<string, unknown>): string {
  try {
    return JSON.stringify(fields);
  } catch (cause) {
    throw new CallMisused(`the request is not JSON: ${String(cause)}`, "not_json");
  }
}

function checkedKey(key: string | undefined): string | undefined {
  if (key === undefined || /^[ -~]{1,255}$/.test(key)) return key;
  throw new CallMisused("an idempotency key has 1 to 255 printable ASCII characters", "idempotency_key_invalid");
}

/** A new idempotency key: 32 hexadecimal digits. */
export function newKey(): string {
  return hex(crypto.getRandomValues(new Uint8Array(16)));
}

export function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** An exponential back-off: twice as long each time, half of it random. */
export function backOffSeconds(tries: number): number {
  return Math.min(8, 0.25 * 2 ** Math.min(tries - 1, 16)) * (0.5 + Math.random() / 2);
}

/** Wait; throw the signal's reason if it aborts first. */
export function sleep(seconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, seconds * 1000);
    if (signal?.aborted) abort();
    else signal?.addEventListener("abort", abort, { once: true });
  });
}

/** Send one request, retried under one key as its options allow; return its reply or throw its last error. */
async function send(connection: Connection, request: Request): Promise<unknown> {
  for (let tries = 1; ; tries++) {
    const attempt = new Attempt(connection, request, (request.options.timeoutSeconds ?? 30) + request.waitSeconds);
    try {
      return await read(await attempt.open(), request.accept);
    } catch (cause) {
      const error = attempt.error(cause);
      const seconds = pauseSeconds(tries, error, request.options.maxRetries ?? RETRIES);
      if (seconds === undefined) throw error;
      attempt.close();
      await sleep(seconds, request.options.signal);
    } finally {
      attempt.close();
    }
  }
}

/**
 * Yield events as they come, resuming after a lost connection, until the caller stops.
 *
 * Before the first event, the options limit the retries. A stream that was open once is reconnected without a limit,
 * and no event is missed meanwhile.
 */
async function* follow(connection: Connection, built: () => Request): AsyncGenerator<unknown, void, undefined> {
  const request = built();
  const { signal, maxRetries = RETRIES } = request.options;
  const ends = /[?&]follow=false/.test(request.target);
  let tries = 0;
  let wasOpen = false;
  for (;;) {
    const attempt = new Attempt(connection, request, SILENCE_SECONDS);
    let pause: number;
    try {
      const response = await attempt.open();
      if (!response.headers.get("content-type")?.startsWith(EVENT_STREAM)) {
        throw new ReplyRefused("the answer is not an event stream");
      }
      const reader = response.body?.getReader();
      const parser = new Parser();
      wasOpen = true;
      for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read()) {
        attempt.touch();
        for (const message of parser.feed(piece.value)) {
          if (message.id) request.headers["last-event-id"] = message.id;
          tries = 0;
          // The time that the caller spends on an event does not count as silence of the server.
          attempt.rest();
          if (message.data) yield parsed(message.data);
          attempt.touch();
        }
      }
      if (ends) return;
      pause = backOffSeconds(++tries);
    } catch (cause) {
      const error = attempt.error(cause);
      const seconds = pauseSeconds(wasOpen ? 1 : ++tries, error, wasOpen ? 1 : maxRetries);
      if (seconds === undefined) throw error;
      pause = wasOpen ? Math.max(seconds, backOffSeconds(++tries)) : seconds;
    } finally {
      attempt.close();
    }
    await sleep(pause, signal);
  }
}

/** Return the pause before the next try; undefined if there is none. */
function pauseSeconds(tries: number, error: unknown, maxRetries: number): number | undefined {
  if (tries > maxRetries || !isPassing(error)) return undefined;
  const asked = error instanceof ApiError ? error.retryAfterSeconds : undefined;
  if (asked === undefined) return backOffSeconds(tries);
  // Clients that were refused together must not retry together.
  return asked > LONGEST_RETRY_AFTER_SECONDS ? undefined : asked + Math.random() * Math.max(0.1, asked / 10);
}

/** One try of a request: it ends after some seconds of silence, or when the caller's signal aborts. */
class Attempt {
  readonly #controller = new AbortController();
  readonly #abort = () => this.#controller.abort();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #timedOut = false;

  constructor(
    readonly connection: Connection,
    readonly request: Request,
    readonly seconds: number,
  ) {}

  async open(): Promise<Response> {
    const { method, target, headers, body = null, options } = this.request;
    options.signal?.throwIfAborted();
    options.signal?.addEventListener("abort", this.#abort);
    this.touch();
    const init = { method, headers, body, redirect: "manual", signal: this.#controller.signal } as const;
    const response = await this.connection.fetch(this.connection.url + target, init);
    if (response.ok) return response;
    throw errorOf(response.status, response.headers, await response.text());
  }

  /** Something arrived: restart the silence timer. */
  touch(): void {
    this.rest();
    this.#timer = setTimeout(() => {
      this.#timedOut = true;
      this.#abort();
    }, this.seconds * 1000);
  }

  /** Stop the silence timer until the next `touch`. */
  rest(): void {
    clearTimeout(this.#timer);
  }

  /** Turn a network failure into an error. */
  error(cause: unknown): unknown {
    const { method, target, options } = this.request;
    if (options.signal?.aborted) return options.signal.reason;
    if (cause instanceof RedKeyError) return cause;
    const said = `${method} ${target.split("?")[0]}`;
    if (this.#timedOut) return new TimedOut(`${said}: no answer in ${this.seconds} seconds`);
    return new Unreachable(`${said}: ${reason(cause)}`, cause);
  }

  close(): void {
    this.rest();
    this.request.options.signal?.removeEventListener("abort", this.#abort);
    this.#abort();
  }
}

/** Node hides the reason of "fetch failed" in the cause. */
function reason(failure: unknown): string {
  const cause = (failure as { cause?: { code?: string; message?: string } } | undefined)?.cause;
  return cause?.message || cause?.code || (failure instanceof Error ? failure.message : String(failure));
}

async function read(response: Response, accept: string): Promise<unknown> {
  if (accept === OCTETS) return new Uint8Array(await response.arrayBuffer());
  const text = await response.text();
  if (accept !== JSON_TYPE) return text;
  // 202 without a body: the data is durable, and there is nothing else to return.
  return response.status === 204 || (response.status === 202 && !text) ? undefined : parsed(text);
}

/** Parse the object or array of a reply; no operation answers with anything else. */
function parsed(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The error is thrown below.
  }
  if (typeof value === "object" && value !== null) return value;
  throw new ReplyRefused(`the answer is not a JSON object: ${text.slice(0, 60)}`);
}
