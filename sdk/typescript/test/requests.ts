/** Make calls: takes a file with a server, a key and calls; what is sent is for the server to hear. */
import { readFileSync, writeFileSync } from "node:fs";
import { RedKey, ReplyRefused } from "../src/index.js";

interface Question {
  url: string;
  apiKey: string;
  calls: Array<{ call: string; typescript: unknown[] }>;
}

const [, , from = "", to = ""] = process.argv;
const { url, apiKey, calls } = JSON.parse(readFileSync(from, "utf8")) as Question;
const families = new RedKey({ url, apiKey, maxRetries: 0 }) as unknown as Record<
  string,
  Record<string, (...args: unknown[]) => unknown>
>;
for (const { call, typescript } of calls) {
  const [family = "", name = ""] = call.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase()).split(".");
  try {
    const found = families[family]![name]!(...typescript);
    if (found instanceof Promise) await found;
    else for await (const _ of found as AsyncIterable<unknown>) break;
  } catch (error) {
    // An empty object is no page of a list.
    if (!(error instanceof ReplyRefused)) throw error;
  }
}
writeFileSync(to, "true");
