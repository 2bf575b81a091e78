import assert from "node:assert/strict";
import { test } from "node:test";
import { ReplyRefused, Unauthorized, Unreachable } from "../src/index.js";
import { Parser } from "../src/sse.js";
import { answer, block, scripted, stream } from "./scripted.js";

async function taken<Item>(events: AsyncIterable<Item>, count: number): Promise<Item[]> {
  const found: Item[] = [];
  for await (const event of events) if (found.push(event) === count) break;
  return found;
}

test("a stream goes on after its last event, however it was cut", async () => {
  const cut = Buffer.from(block(3, "é")).subarray(0, -5);
  assert.equal(cut.at(-1), 0xc3, "the cut is inside a character");
  const steps = [stream(block(1), block(2), cut), answer(503), stream(block(3, "é"), "id: 9\n\n"), stream(block(10))];
  await scripted(steps, async (rk, heard) => {
    const found = await taken(rk.events.follow({ types: ["task.created"] }), 4);
    assert.deepEqual(
      found.map((event) => event.sequence),
      [1, 2, 3, 10],
    );
    assert.equal((found[2] as unknown as { text: string }).text, "é");
    assert.deepEqual(
      heard.map((one) => one.headers["last-event-id"]),
      [undefined, "2", "2", "9"],
    );
    assert.equal(heard[0]!.headers["accept"], "text/event-stream");
  });
});

test("before its first event a stream has the patience of a call, and a refusal ends it at any time", async () => {
  await scripted([answer(503), answer(503)], async (rk) => {
    await assert.rejects(taken(rk.withOptions({ maxRetries: 1 }).events.follow(), 1), { status: 503 });
  });
  await scripted([], async (rk) => {
    await assert.rejects(taken(rk.withOptions({ maxRetries: 0 }).events.follow(), 1), Unreachable);
  });
  await scripted([stream(block(1)), answer(401)], async (rk) => {
    await assert.rejects(taken(rk.events.follow(), 2), Unauthorized);
  });
});

test("an answer that is no stream, and an event that is no JSON, are ReplyRefused", async () => {
  await scripted([answer(200, "<html>", { "content-type": "text/html" })], async (rk) => {
    await assert.rejects(taken(rk.events.follow(), 1), ReplyRefused);
  });
  await scripted([stream("data: nothing\n\n")], async (rk) => {
    await assert.rejects(taken(rk.events.follow(), 1), ReplyRefused);
  });
});

test("leaving the loop closes the connection", async () => {
  await scripted([{ open: stream(block(1)) }], async (rk, heard) => {
    assert.equal((await taken(rk.events.follow(), 1)).length, 1);
    await heard[0]!.closed;
  });
});

test("a signal ends a stream", async () => {
  const reason = new Error("enough");
  await scripted([stream(block(1)), null], async (rk) => {
    const controller = new AbortController();
    const events = rk.events.follow({}, { signal: controller.signal });
    assert.equal((await events.next()).value?.sequence, 1);
    const next = events.next();
    controller.abort(reason);
    await assert.rejects(next, (error) => error === reason);
  });
});

test("the parser takes every line end and every cut", () => {
  const text = Buffer.from(': hello\r\nid: 1\r\ndata: {"a":\rdata: "é"}\n\r\nevent: x\nid\n\ndata:no space\n\n');
  const whole = [...new Parser().feed(text)];
  assert.deepEqual(whole, [
    { id: "1", data: '{"a":\n"é"}' },
    { id: "", data: "" },
    { id: "", data: "no space" },
  ]);
  for (let at = 1; at < text.length; at++) {
    const parser = new Parser();
    assert.deepEqual([...parser.feed(text.subarray(0, at)), ...parser.feed(text.subarray(at))], whole, `cut at ${at}`);
  }
  const endless = new Parser();
  assert.throws(() => {
    for (let count = 0; count < 20; count++) [...endless.feed(Buffer.alloc(100_000, "x"))];
  }, ReplyRefused);
});
