/**
 * Login by OAuth code with PKCE: the page leaves for the server's login page, comes back with a code, and exchanges it.
 * What must survive the way (verifier and state) is in sessionStorage and is deleted when it is used.
 */

const CLIENT = "redkey-studio";
const BEGUN = "redkey.login";

export interface Tokens {
  accessToken: string;
  refreshToken: string;
  scopes: string[];
  /** When the access token ends, in milliseconds since 1970. */
  expiresAt: number;
}

interface Begun {
  verifier: string;
  state: string;
  /** Where the person was: the part of the address behind the #. */
  hash: string;
}

const page = () => new URL(".", location.href.replace(/[?#].*$/, "")).href;

/** Leave for the login page. */
export async function beginLogin(base: string): Promise<void> {
  if (!crypto.subtle) throw new Error("Login by e-mail needs https, or the address http://127.0.0.1.");
  const begun: Begun = { verifier: random(), state: random(), hash: location.hash };
  sessionStorage.setItem(BEGUN, JSON.stringify(begun));
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(begun.verifier));
  const asked = new URLSearchParams({
    response_type: "code",
    client_id: CLIENT,
    redirect_uri: page(),
    state: begun.state,
    code_challenge: base64url(new Uint8Array(digest)),
    code_challenge_method: "S256",
  });
  location.assign(`${base}/oauth/authorize?${asked}`);
}

/** Take the answer of the login page out of the address, so that it stays in no history; undefined if there is none. */
export function takeAnswer(): URLSearchParams | undefined {
  const said = new URLSearchParams(location.search);
  if (!said.has("state")) return undefined;
  history.replaceState(null, "", location.pathname + location.hash);
  return said;
}

/** Exchange the code of an answer. */
export async function finishLogin(base: string, said: URLSearchParams): Promise<Tokens> {
  const begun = JSON.parse(sessionStorage.getItem(BEGUN) ?? "null") as Begun | null;
  sessionStorage.removeItem(BEGUN);
  if (!begun || said.get("state") !== begun.state) throw new Error("This login was not begun in this tab. Log in again.");
  if (begun.hash) location.replace(location.pathname + begun.hash);
  const code = said.get("code");
  if (!code) throw new Error(said.get("error_description") ?? "You are not logged in.");
  return ask(base, { grant_type: "authorization_code", code, redirect_uri: page(), code_verifier: begun.verifier });
}

/** Exchange a refresh token for the next pair of tokens. */
export const refresh = (base: string, token: string): Promise<Tokens> =>
  ask(base, { grant_type: "refresh_token", refresh_token: token });

/** End the session on the server. */
export async function revoke(base: string, token: string): Promise<void> {
  await fetch(`${base}/oauth/revoke`, { method: "POST", body: new URLSearchParams({ token }) });
}

/** The login is over: the server refuses the refresh token. */
export class LoginEnded extends Error {}

async function ask(base: string, form: Record<string, string>): Promise<Tokens> {
  const begun = Date.now();
  const reply = await fetch(`${base}/oauth/token`, {
    method: "POST",
    body: new URLSearchParams({ ...form, client_id: CLIENT }),
  });
  const said = (await reply.json()) as Record<string, string | number>;
  if (reply.status === 400) throw new LoginEnded(String(said.error_description));
  if (!reply.ok) throw new Error(String(said.detail ?? said.error_description));
  return {
    accessToken: String(said.access_token),
    refreshToken: String(said.refresh_token),
    scopes: String(said.scope).split(" "),
    expiresAt: begun + Number(said.expires_in) * 1000,
  };
}

const random = (): string => base64url(crypto.getRandomValues(new Uint8Array(32)));

const base64url = (bytes: Uint8Array): string =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
