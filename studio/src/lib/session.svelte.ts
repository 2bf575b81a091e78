/**
 * Who is logged in: a key or token in sessionStorage, which ends with the tab. There is no cookie, so another site
 * cannot make this page act.
 */
import { ApiError, RedKey } from "redkey";
import { finishLogin, LoginEnded, refresh, revoke, takeAnswer, type Tokens } from "./oauth";

const KEPT = "redkey.session";
/** What a scope allows, beside itself. */
const INCLUDES: Record<string, string[]> = {
  operator: [],
  admin: ["produce", "runner", "read"],
  produce: ["read"],
  runner: ["read"],
  agent: ["read"],
};

interface Kept {
  key: string;
  scopes: string[];
  workspaceId: string;
  /** For a person: the token that renews the login, and when the access token ends. */
  refreshToken?: string;
  expiresAt?: number;
}

/** An access token is renewed this long before its end. */
const EARLY_MS = 60_000;

/** The address of the API: where this page is, without `/studio/`. */
export const base = new URL("..", location.href.replace(/#.*$/, "")).href.replace(/\/$/, "");

class Session {
  kept = $state.raw<Kept | undefined>(read());
  /** Why there is no session any more; empty before the first login. */
  ended = $state("");
  /** A login code that came with the address. */
  code = $state(takeCode());
  /** Whether the last request reached the server. */
  online = $state(true);
  /** What the login page answered, until it is used. */
  answer = $state.raw(takeAnswer());
  #client: RedKey | undefined;
  #renewal: Promise<void> | undefined;

  get client(): RedKey {
    if (!this.kept) throw new Error("You are not logged in.");
    const fetch = (...args: Parameters<typeof globalThis.fetch>) => this.#send(...args);
    this.#client ??= new RedKey({ url: base, apiKey: this.kept.key, maxRetries: 2, fetch, log: () => {} });
    return this.#client;
  }

  /** Ask for what may also be open to everybody: with the login, and without it if the login is no longer valid. */
  async ask(path: string): Promise<Response> {
    const headers = { accept: "application/json" };
    if (this.kept) {
      const authorization = `Bearer ${this.kept.key}`;
      const reply = await this.#send(base + path, { headers: { ...headers, authorization } }).catch((error: unknown) => {
        if (!(error instanceof LoginEnded)) throw error;
      });
      if (reply && reply.status !== 401) return reply;
    }
    return fetch(base + path, { headers });
  }

  async #send(...[input, init]: Parameters<typeof globalThis.fetch>): Promise<Response> {
    const args: Parameters<typeof globalThis.fetch> = [input, await this.#authorized(init)];
    try {
      const reply = await fetch(...args);
      this.online = true;
      return reply;
    } catch (error) {
      // A call that the page itself ended says nothing about the server.
      if (!args[1]?.signal?.aborted) this.online = false;
      throw error;
    }
  }

  /** The options of a request, with an access token that is good now. */
  async #authorized(init: RequestInit | undefined): Promise<RequestInit | undefined> {
    if (!this.kept?.refreshToken) return init;
    if (Date.now() > (this.kept.expiresAt ?? 0) - EARLY_MS) {
      // Requests that come together share one renewal: a refresh token is good once.
      this.#renewal ??= this.#renew(this.kept.refreshToken).finally(() => (this.#renewal = undefined));
      await this.#renewal;
    }
    const headers = new Headers(init?.headers);
    if (this.kept) headers.set("authorization", `Bearer ${this.kept.key}`);
    return { ...init, headers };
  }

  async #renew(token: string): Promise<void> {
    try {
      const tokens = await refresh(base, token);
      if (this.kept) this.#store({ ...this.kept, ...fields(tokens) });
    } catch (error) {
      if (error instanceof LoginEnded) this.end("Your login has ended. Log in again.");
      throw error;
    }
  }

  /** Whether the session has one of these scopes. */
  may(...scopes: string[]): boolean {
    const held = new Set((this.kept?.scopes ?? []).flatMap((scope) => [scope, ...(INCLUDES[scope] ?? [])]));
    return scopes.some((scope) => held.has(scope));
  }

  /** Log in with a key: learn its scopes and its workspace, then keep it. */
  async withKey(key: string): Promise<void> {
    const [, id = "", secret = ""] = /^rk_([^_]+)_(.+)$/.exec(key.trim()) ?? [];
    if (!secret) throw new Error("A key looks like rk_ID_SECRET. `redkey key create` makes one.");
    const client = new RedKey({ url: base, apiKey: key.trim(), maxRetries: 0 });
    const token = await client.oauth.token({ client_id: `rk_${id}`, client_secret: secret });
    await this.#keep(key.trim(), token.scope.split(" "));
  }

  /** Log in with a code, which is valid once: it becomes a token with the chosen scopes. */
  async withCode(scope: string): Promise<void> {
    const reply = await fetch(`${base}/login-codes/exchange`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ code: this.code, ...(scope ? { scope } : {}) }),
    });
    const said = (await reply.json()) as { accessToken?: string; scopes?: string[]; detail?: string; advice?: string };
    if (!reply.ok || !said.accessToken) throw new Error([said.detail, said.advice].filter(Boolean).join(" "));
    await this.#keep(said.accessToken, said.scopes ?? []);
    this.code = "";
  }

  /** Log in with the answer of the login page. */
  async withAnswer(): Promise<void> {
    const said = this.answer;
    this.answer = undefined;
    if (!said) return;
    const tokens = await finishLogin(base, said);
    await this.#keep(tokens.accessToken, tokens.scopes, tokens);
  }

  /** Log out: a person's session ends on the server too. */
  logout(): void {
    const token = this.kept?.refreshToken;
    if (token) void revoke(base, token).catch(() => {});
    this.end();
  }

  end(why = ""): void {
    sessionStorage.clear();
    this.#client = undefined;
    this.ended = why;
    this.kept = undefined;
  }

  /** End the session if an error says that its key is not valid any more; true if it did. */
  endsWith(error: unknown): boolean {
    if (!(error instanceof ApiError) || error.status !== 401 || !this.kept) return false;
    this.end("Your key was revoked or has expired. Log in again.");
    return true;
  }

  async #keep(key: string, scopes: string[], tokens?: Tokens): Promise<void> {
    const client = new RedKey({ url: base, apiKey: key, maxRetries: 0 });
    const workspaceId = (await client.workspaces.list({ limit: 1 }).page()).items[0]?.workspaceId ?? "";
    this.ended = "";
    this.#store({ key, scopes, workspaceId, ...(tokens ? fields(tokens) : {}) });
  }

  #store(kept: Kept): void {
    sessionStorage.setItem(KEPT, JSON.stringify(kept));
    // A renewed token is the same session: what follows it need not begin again.
    if (this.kept && this.kept.workspaceId === kept.workspaceId) Object.assign(this.kept, kept);
    else this.kept = kept;
  }
}

const fields = ({ accessToken, scopes, refreshToken, expiresAt }: Tokens) => ({
  key: accessToken,
  scopes,
  refreshToken,
  expiresAt,
});

function read(): Kept | undefined {
  try {
    const kept = JSON.parse(sessionStorage.getItem(KEPT) ?? "null") as Kept | null;
    return kept?.key ? kept : undefined;
  } catch {
    return undefined;
  }
}

/** Take the code out of the address at once, so that it stays in no history. */
function takeCode(): string {
  const [, code = ""] = /^#code=([\w-]+)$/.exec(location.hash) ?? [];
  if (code) history.replaceState(null, "", location.pathname);
  return code;
}

export const session = new Session();
