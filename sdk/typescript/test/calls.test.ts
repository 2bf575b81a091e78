import assert from "node:assert/strict";
import { test } from "node:test";
import * as redkey from "../src/index.js";
import { answer, KEY, scripted } from "./scripted.js";

const { RedKey } = redkey;
const PROBLEM = {
  code: "invalid_field",
  detail: "The title is missing.",
  advice: "Give a title.",
  errors: [{ code: "missing", pointer: "/title", message: "It is required." }],
};

test("what may succeed later is sent again under one key, and after Retry-After", async () => {
  const steps = [
    answer(503),
    answer(429, {}, { "retry-after": "0" }),
    answer(408),
    answer(520, "a page of a proxy"),
    answer(201, { taskId: "t" }),
  ];
  await scripted(steps, async (rk, heard) => {
    assert.deepEqual(await rk.tasks.create("q", { title: "T" }), { taskId: "t" });
    assert.equal(heard.length, 5);
    assert.equal(new Set(heard.map((one) => one.headers["idempotency-key"])).size, 1);
    assert.match(heard[0]!.headers["idempotency-key"]!, /^[0-9a-f]{32}$/);
    assert.equal(new Set(heard.map((one) => one.body)).size, 1);
  });
});

test("Retry-After is waited for, and a server that asks for too much is not", async () => {
  await scripted([answer(503, {}, { "retry-after": "1" }), answer(200, {})], async (rk) => {
    const begun = performance.now();
    await rk.server.health();
    assert.ok(performance.now() - begun >= 1000);
  });
  await scripted([answer(503, {}, { "retry-after": "61" })], async (rk) => {
    await assert.rejects(
      rk.server.health(),
      (error: redkey.ApiError) => error instanceof redkey.ServerFailed && error.retryAfterSeconds === 61,
    );
  });
});

test("a refusal is never sent again, and is an error by its code and status", async () => {
  const kinds: Array<[number, object, unknown]> = [
    [400, {}, redkey.Invalid],
    [401, {}, redkey.Unauthorized],
    [402, {}, redkey.CreditsExhausted],
    [403, {}, redkey.Forbidden],
    [404, {}, redkey.NotFound],
    [409, {}, redkey.Conflict],
    [409, { code: "lease_lost" }, redkey.LeaseLost],
    [409, { code: "already_terminal" }, redkey.AlreadyTerminal],
    [413, {}, redkey.Invalid],
    [418, {}, redkey.ApiError],
    [422, PROBLEM, redkey.Invalid],
    [302, {}, redkey.ApiError],
  ];
  for (const [status, body, kind] of kinds) {
    // A redirect is not followed: the key is for this server alone.
    await scripted(
      [answer(status, body, status === 302 ? { location: "/elsewhere" } : {}), answer(200)],
      async (rk, heard) => {
        const error = await rk.tasks.create("q", { title: "" }).then(
          () => assert.fail("it was not refused"),
          (refused: redkey.ApiError) => refused,
        );
        assert.equal(error.constructor, kind, String(status));
        assert.equal(error.status, status);
        assert.equal(error.name, error.constructor.name);
        assert.equal(heard.length, 1);
        if (body === PROBLEM) {
          assert.equal(error.code, "invalid_field");
          assert.equal(error.message, "The title is missing. Give a title.\n  /title: It is required. [missing]");
          assert.deepEqual(error.errors, PROBLEM.errors);
        }
      },
    );
  }
});

test("an answer that says not to retry is not retried, and retries are counted", async () => {
  await scripted([answer(503, {}, { "x-should-retry": "false" })], async (rk, heard) => {
    await assert.rejects(rk.server.health(), redkey.ServerFailed);
    assert.equal(heard.length, 1);
  });
  await scripted([answer(503), answer(503)], async (rk, heard) => {
    await assert.rejects(rk.withOptions({ maxRetries: 1 }).server.health(), redkey.ServerFailed);
    assert.equal(heard.length, 2);
  });
});

test("no server, a cut answer and a closed connection are Unreachable", async () => {
  const gone = new RedKey({ url: "http://127.0.0.1:1", apiKey: KEY, maxRetries: 1 });
  await assert.rejects(
    gone.server.health(),
    (error: redkey.Unreachable) => error.code === "unreachable" && /GET \/healthz/.test(error.message),
  );
  const whole = answer(200, { status: "ok" });
  await scripted([whole.slice(0, -1), whole], async (rk, heard) => {
    assert.equal((await rk.server.health()).status, "ok");
    assert.equal(heard.length, 2);
  });
  await scripted([], async (rk) => {
    await assert.rejects(rk.withOptions({ maxRetries: 0 }).server.health(), redkey.Unreachable);
  });
});

test("silence is TimedOut, and the wait of a call is added to its patience", async () => {
  await scripted([null], async (rk) => {
    await assert.rejects(rk.server.health({ timeoutSeconds: 0.05, maxRetries: 0 }), redkey.TimedOut);
  });
  await scripted([null], async (rk) => {
    const begun = performance.now();
    await assert.rejects(
      rk.queues.claimNext("q", { agentId: "a", wait: 0.3 }, { timeoutSeconds: 0.05, maxRetries: 0 }),
      redkey.TimedOut,
    );
    assert.ok(performance.now() - begun >= 340);
  });
});

test("a signal ends a call at once, whatever it waits for", async () => {
  const reason = new Error("enough");
  await scripted([null], async (rk, heard) => {
    const controller = new AbortController();
    const call = rk.server.health({ signal: controller.signal });
    while (!heard.length) await new Promise((resolve) => setTimeout(resolve, 1));
    controller.abort(reason);
    await assert.rejects(call, (error) => error === reason);
    await assert.rejects(rk.server.health({ signal: controller.signal }), (error) => error === reason);
    assert.equal(heard.length, 1);
  });
  await scripted([answer(503, {}, { "retry-after": "30" })], async (rk, heard) => {
    const controller = new AbortController();
    const call = rk.server.health({ signal: controller.signal });
    while (!heard.length) await new Promise((resolve) => setTimeout(resolve, 1));
    controller.abort(reason);
    await assert.rejects(call, (error) => error === reason);
  });
});

test("what is no answer of this API is ReplyRefused", async () => {
  for (const body of ["<html>", "", "null", "7", '"text"', '{"status":']) {
    await scripted([answer(200, body)], async (rk, heard) => {
      await assert.rejects(rk.server.health(), redkey.ReplyRefused, body);
      assert.equal(heard.length, 1);
    });
  }
  await scripted([answer(200, { things: [] })], async (rk) => {
    await assert.rejects(rk.queues.list().page(), redkey.ReplyRefused);
  });
  await scripted([answer(200, { status: "claimed" })], async (rk) => {
    await assert.rejects(rk.hold("q", { agentId: "a" }), redkey.ReplyRefused);
  });
  await scripted([answer(422, "[7, {}]"), answer(422, '{"errors": 5, "code": 7}')], async (rk) => {
    await assert.rejects(rk.server.health(), redkey.Invalid);
    await assert.rejects(rk.server.health(), redkey.Invalid);
  });
});

test("lists are walked a page at a time, and no further than asked", async () => {
  const pages = [answer(200, { items: [1, 2], next: "a b" }), answer(200, { items: [3], next: null })];
  await scripted([...pages], async (rk, heard) => {
    const found: unknown[] = [];
    for await (const item of rk.queues.list({ limit: 2 })) found.push(item);
    assert.deepEqual(found, [1, 2, 3]);
    assert.deepEqual(
      heard.map((one) => one.line.split(" ")[1]),
      ["/queues?limit=2", "/queues?limit=2&after=a+b"],
    );
  });
  await scripted([...pages], async (rk, heard) => {
    for await (const _ of rk.queues.list()) break;
    assert.equal(heard.length, 1);
  });
});

test("what cannot be sent is CallMisused, as a rejection", async () => {
  const rk = new RedKey({ url: "http://127.0.0.1:1", apiKey: KEY });
  const circle: Record<string, unknown> = {};
  circle["self"] = circle;
  for (const id of ["", ".", "..", undefined as unknown as string])
    await assert.rejects(rk.tasks.get(id), redkey.CallMisused);
  await assert.rejects(rk.tasks.create("q", { title: "T", input: circle }), { code: "not_json" });
  await assert.rejects(rk.tasks.create("q", { title: "T", input: 7n }), { code: "not_json" });
  await assert.rejects(rk.tasks.create("q", { title: "T" }, { idempotencyKey: "é" }), {
    code: "idempotency_key_invalid",
  });
  await assert.rejects(rk.run(), { code: "no_worker" });
  assert.throws(() => rk.worker({ queue: "q", handler: () => 1, leaseSeconds: 4 }), { code: "invalid_lease" });
  assert.throws(() => rk.worker({ queue: "q", handler: () => 1, concurrency: 0 }), { code: "concurrency_invalid" });
});

test("a server and its key are found or refused with the next step", () => {
  for (const url of ["ftp://x", "http://user@x", "http://x?y", "x", "http://"]) {
    assert.throws(() => new RedKey({ url, apiKey: KEY }), redkey.ConfigRefused, url);
  }
  assert.throws(() => new RedKey({ url: "http://x", apiKey: "a b" }), redkey.ConfigRefused);
  assert.throws(() => new RedKey({ data: "/nonexistent" }), /redkey serve/);
  assert.throws(() => new RedKey({ url: "http://x", data: "/nonexistent" }), /no key for/);
  assert.equal(new RedKey({ apiKey: KEY, data: "/nonexistent" }).url, "http://127.0.0.1:8700");
  assert.doesNotMatch(`${JSON.stringify(new RedKey({ apiKey: KEY, data: "/nonexistent" }))}`, /secret/);
});
