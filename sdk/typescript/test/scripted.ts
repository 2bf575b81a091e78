/** A tiny real server that answers as it was told: refusals, cut replies, silence. One step for each request. */
import { createServer, type Socket } from "node:net";
import { RedKey, type Settings } from "../src/index.js";

export interface Heard {
  line: string;
  headers: Record<string, string>;
  body: string;
  /** When the connection that it came on was closed. */
  closed: Promise<void>;
}

/** A whole answer, one that has no end, or `null` for silence. */
export type Step = Buffer | string | { open: Buffer } | null;

export const KEY = "rk_0000000000000000_secretsecretsecret";

export function answer(status: number, body: unknown = {}, headers: Record<string, string> = {}): string {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const said = {
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(text)),
    connection: "close",
    ...headers,
  };
  const lines = Object.entries(said).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} X\r\n${lines.join("")}\r\n${text}`;
}

/** A stream that ends after these bytes. */
export function stream(...blocks: Array<string | Buffer>): Buffer {
  const head = "HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
  return Buffer.concat([head, ...blocks].map((block) => Buffer.from(block as string)));
}

/** One event as the server sends it. */
export function block(sequence: number, text = ""): string {
  return `id: ${sequence}\ndata: ${JSON.stringify({ sequence, text })}\n\n`;
}

/** Run a test against a server with these steps: the client, and what the server heard. */
export async function scripted(
  steps: Step[],
  test: (rk: RedKey, heard: Heard[]) => Promise<void>,
  settings: Settings = {},
): Promise<void> {
  const heard: Heard[] = [];
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    let data = "";
    open.add(socket);
    socket.on("error", () => undefined);
    socket.on("close", () => open.delete(socket));
    const closed = new Promise<void>((resolve) => socket.on("close", () => resolve()));
    socket.on("data", (piece) => {
      data += piece.toString("latin1");
      const [head = "", ...rest] = data.split("\r\n\r\n");
      const [line = "", ...lines] = head.split("\r\n");
      const headers = Object.fromEntries(
        lines.map((one) => [one.split(": ")[0]!.toLowerCase(), one.slice(one.indexOf(": ") + 2)]),
      );
      const body = rest.join("\r\n\r\n");
      if (!rest.length || body.length < Number(headers["content-length"] ?? 0)) return;
      data = "";
      heard.push({ line, headers, body, closed });
      const step = steps.shift();
      if (step === undefined) socket.destroy();
      else if (step !== null && typeof step === "object" && "open" in step) socket.write(step.open);
      else if (step !== null) socket.end(step);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  try {
    await test(new RedKey({ url: `http://127.0.0.1:${port}`, apiKey: KEY, ...settings }), heard);
  } finally {
    for (const socket of open) socket.destroy();
    server.close();
  }
}
