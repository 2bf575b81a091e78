/**
 * The server's address and key: from arguments, then `REDKEY_` variables, then the file of `redkey serve`.
 *
 * A key is a secret for one server. A key from one server's file is never sent to another server. A key that the user
 * provided is sent only to a server that the user named or that runs on this machine.
 */
import { ConfigRefused } from "./errors.js";

interface Credentials {
  url: string;
  apiKey: string;
}

interface Runtime {
  env: Record<string, string | undefined>;
  getBuiltinModule?(name: "node:fs"): { readFileSync(path: string, encoding: "utf8"): string };
}

/** Node's `process`, which Deno and Bun have too; browsers have none. */
const runtime = (globalThis as { process?: Runtime }).process;

/** Return the server and its key; ConfigRefused with the next step if they cannot be found. */
export function findSettings(url?: string, apiKey?: string, data?: string): Credentials {
  const wanted = url || runtime?.env["REDKEY_URL"];
  const key = apiKey || runtime?.env["REDKEY_API_KEY"];
  if (wanted && key) return checked(wanted, key);
  const directory = data || runtime?.env["REDKEY_DATA"] || ".redkey";
  const found = readCredentials(directory);
  if (wanted) {
    if (found && bare(found.url) === bare(wanted)) return checked(wanted, found.apiKey);
    throw new ConfigRefused(`there is no key for ${wanted}: give apiKey, or set REDKEY_API_KEY`);
  }
  if (found) {
    if (key && !isLocal(found.url)) {
      throw new ConfigRefused(`${directory} names ${found.url}: name it in REDKEY_URL if your key is meant for it`);
    }
    return checked(found.url, key || found.apiKey);
  }
  if (key) return checked("http://127.0.0.1:8700", key);
  throw new ConfigRefused(
    `no RedKey server found: run \`redkey serve\` here, name its data directory (${directory} has no credentials) in ` +
      "REDKEY_DATA, or set REDKEY_URL and REDKEY_API_KEY",
  );
}

function readCredentials(directory: string): Credentials | undefined {
  try {
    const text = runtime?.getBuiltinModule?.("node:fs").readFileSync(`${directory}/credentials.json`, "utf8");
    return text === undefined ? undefined : (JSON.parse(text) as Credentials);
  } catch (cause) {
    if ((cause as { code?: string }).code === "ENOENT") return undefined;
    throw new ConfigRefused(`the credentials in ${directory} cannot be read: ${String(cause)}`);
  }
}

function checked(url: string, apiKey: string): Credentials {
  if (!/^[!-~]+$/.test(apiKey)) throw new ConfigRefused("the API key has characters that no key has");
  const parts = URL.canParse(url) ? new URL(url) : undefined;
  if (!parts || !/^https?:$/.test(parts.protocol) || parts.username || parts.search || parts.hash) {
    throw new ConfigRefused("a server is named as http://host:port or https://host");
  }
  return { url: bare(url), apiKey };
}

function bare(url: string): string {
  return url.replace(/\/+$/, "");
}

/** Whether the address is on this machine. */
function isLocal(url: string): boolean {
  return /^(localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0|\[::1?\])$/.test(new URL(url).hostname);
}
