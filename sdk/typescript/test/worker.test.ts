/** Against a real server: `REDKEY_URL` and `REDKEY_API_KEY` name it. Each test has a queue of its own. */
import assert from "node:assert/strict";
import { describe, mock, test } from "node:test";
import * as redkey from "../src/index.js";
import { verifyReceipt } from "../src/receipts/index.js";

const { Block, Done, Fail, RedKey, Release } = redkey;
const quiet = { log: () => undefined };
const admin = new RedKey(quiet);
let count = 0;

/** A queue and an agent of their own. */
async function place(): Promise<{ queue: string; agentId: string }> {
  const name = `${process.pid}-${++count}`;
  await admin.queues.create({ name: `q-${name}` });
  const { agentId } = await admin.agents.register({ agentCard: { name: `agent-${name}`, version: "1" } });
  return { queue: `q-${name}`, agentId };
}

/** Run a worker until these tasks have ended: the tasks, and the tally of the run. */
async function worked(
  queue: string,
  handler: (ctx: redkey.Hold) => unknown,
  titles: string[],
  options: Partial<redkey.WorkerOptions> = {},
) {
  const rk = new RedKey(quiet);
  rk.worker({ queue, handler, leaseSeconds: 5, ...options });
  const running = rk.run();
  const made = await Promise.all(titles.map((title) => admin.tasks.create(queue, { title, input: { title } })));
  const tasks = await Promise.all(made.map(({ taskId }) => admin.tasks.wait(taskId)));
  rk.stop();
  return { tasks, tally: await running };
}

function until(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => (signal.aborted ? resolve() : signal.addEventListener("abort", () => resolve())));
}

// Alone, because it sets the clock of the process.
test("a step of the clock loses nothing: the server is asked at once what is held", async () => {
  const { queue, agentId } = await place();
  await admin.tasks.create(queue, { title: "T" });
  const beats: string[] = [];
  const counted: typeof fetch = (input, init) => {
    if (String(input).endsWith("/heartbeat")) beats.push(String(input));
    return fetch(input, init);
  };
  const rk = new RedKey({ ...quiet, fetch: counted });
  const hold = await rk.hold(queue, { agentId, leaseSeconds: 86_400 });
  assert.ok(hold.status === "claimed");
  const real = Date.now;
  try {
    for (const step of [86_400_000, -86_400_000]) {
      const before = beats.length;
      mock.method(Date, "now", () => real() + step);
      while (beats.length === before) await new Promise((resolve) => setTimeout(resolve, 20));
      assert.equal(hold.leaseLost, false);
    }
  } finally {
    mock.restoreAll();
  }
  assert.equal((await hold.release()).status, "released");
});

describe("side by side", { concurrency: true }, () => {
  test("a chatty handler leaves few records, and its last word is seen", async () => {
    const { queue, agentId } = await place();
    const recorded = async (taskId: string) =>
      (await admin.tasks.events(taskId).page()).items.filter(({ type }) => type === "task.progress").length;
    const { tasks } = await worked(
      queue,
      async (ctx) => {
        for (let row = 0; row < 100; row++) await ctx.progress(`row ${row}`, row + 0.6);
        // Silent work follows: the last report must come by itself.
        while ((await recorded(ctx.task.taskId)) < 2) await new Promise((resolve) => setTimeout(resolve, 50));
      },
      ["T"],
      { agent: agentId },
    );
    const [task] = tasks;
    assert.deepEqual([task?.state, task?.progress?.text, task?.progress?.percent], ["completed", "row 99", 100]);
    assert.ok((await recorded(task!.taskId)) < 10);
  });

  test("a claim is a union that narrows, and a miss never throws", async () => {
    const { queue, agentId } = await place();
    const nothing = await admin.queues.claimNext(queue, { agentId });
    assert.equal(nothing.status, "no_tasks");
    const { taskId } = await admin.tasks.create(queue, { title: "T" });
    const won = await admin.tasks.claim(taskId, { agentId, withTask: true });
    assert.ok(won.status === "claimed");
    assert.equal(won.task?.title, "T");
    const other = await place();
    const missed = await admin.tasks.claim(taskId, { agentId: other.agentId });
    assert.ok(missed.status === "missed");
    assert.equal(missed.winningClaimId, won.claimId);
    assert.equal(missed.next.action, "poll_available_tasks");
    await admin.roles.create({ name: `r-${queue}` });
    const closed = await admin.tasks.create(queue, { title: "C", requiredRoles: [`r-${queue}`] });
    const rejected = await admin.tasks.claim(closed.taskId, { agentId });
    assert.ok(rejected.status === "rejected");
    assert.equal(rejected.reason, "missing_role");
  });

  test("a worker completes, fails, blocks and releases as its handler says", async () => {
    const { queue } = await place();
    let given = 0;
    const handler = async (ctx: redkey.Hold) => {
      const { title } = ctx.input as { title: string };
      if (title === "fails") throw new Fail("no luck", "rejected");
      if (title === "breaks") throw new TypeError("broken");
      if (title === "blocks" && !(await ctx.view()).answer) throw new Block("Which?", "ambiguity");
      if (title === "gives back" && given++ === 0) throw new Release();
      return new Done({ title }, { summary: `${title}.` });
    };
    const answering = (async () => {
      for await (const event of admin.events.follow({ types: "task.blocked", queueId: queue, after: 0 })) {
        await admin.tasks.unblock(event.subject.id, { answer: "The first." });
        return;
      }
    })();
    const { tasks, tally } = await worked(queue, handler, ["completes", "fails", "breaks", "blocks", "gives back"], {
      concurrency: 2,
    });
    await answering;
    assert.deepEqual(
      tasks.map((task) => task.state),
      ["completed", "failed", "failed", "completed", "completed"],
    );
    assert.equal(tasks[1]?.failure?.reason, "no luck");
    assert.match(tasks[2]?.failure?.reason ?? "", /TypeError: broken/);
    assert.equal(tally.completed, 3);
    assert.equal(tally.blocked, 1);
    assert.equal(tally.released, 1);
    assert.ok(tally.failed >= 2);
  });

  test("artifacts: text, bytes, JSON, a large one, and outputs that are filled by what is returned", async () => {
    const { queue } = await place();
    const large = new Uint8Array(300_000).fill(7);
    const rk = new RedKey(quiet);
    rk.worker({
      queue,
      handler: async (ctx) => {
        await ctx.artifact("text", "# Title\n", { mediaType: "text/markdown" });
        await ctx.artifact("bytes", new Uint8Array([0, 255]));
        await ctx.artifact("large", large);
        await ctx.plan({ steps: ["one"] });
        return { packet: { facts: 5 }, more: true };
      },
    });
    const running = rk.run();
    const { taskId } = await admin.tasks.create(queue, { title: "T", outputs: ["packet", "large"] });
    const task = await admin.tasks.wait(taskId);
    rk.stop();
    assert.equal((await running).completed, 1);
    const made = Object.fromEntries((task.artifacts ?? []).map((one) => [one.name, one]));
    assert.deepEqual(Object.keys(made).sort(), ["bytes", "large", "packet", "text"]);
    assert.deepEqual(await admin.content.get(made["large"]!.sha256), large);
    assert.deepEqual(await admin.content.get(made["bytes"]!.sha256), new Uint8Array([0, 255]));
    assert.deepEqual(task.output, { more: true });
  });

  test("a refused end becomes a failure that says why", async () => {
    const { queue } = await place();
    const circle: Record<string, unknown> = {};
    circle["self"] = circle;
    const { tasks } = await worked(queue, () => circle, ["T"]);
    assert.match(tasks[0]?.failure?.reason ?? "", /cannot be sent/);
    const rk = new RedKey(quiet);
    rk.worker({ queue, handler: () => 1, leaseSeconds: 5 });
    const running = rk.run();
    const { taskId } = await admin.tasks.create(queue, { title: "T", outputs: ["a", "b"], retry: { maxAttempts: 1 } });
    const task = await admin.tasks.wait(taskId);
    rk.stop();
    await running;
    assert.match(task.failure?.reason ?? "", /missing_artifact/);
  });

  test("a cancelled task and a lost lease abort the signal, and the server is told nothing more", async () => {
    const { queue } = await place();
    const reasons: string[] = [];
    const rk = new RedKey(quiet);
    let begin = (_: redkey.Hold): void => undefined;
    // Asked for before the task is there: the worker may be faster than the answer to its creation.
    const began = () => new Promise<redkey.Hold>((resolve) => (begin = resolve));
    rk.worker({
      queue,
      leaseSeconds: 5,
      handler: async (ctx) => {
        begin(ctx);
        await until(ctx.signal);
        reasons.push((ctx.signal.reason as redkey.WorkInterrupted).code);
        assert.throws(() => ctx.check(), redkey.WorkInterrupted);
        return "late";
      },
    });
    const running = rk.run();
    const first = began();
    const cancelled = await admin.tasks.create(queue, { title: "cancelled" });
    await first;
    await admin.tasks.cancel(cancelled.taskId);
    assert.equal((await admin.tasks.wait(cancelled.taskId)).state, "cancelled");
    const second = began();
    const lost = await admin.tasks.create(queue, { title: "lost" });
    const hold = await second;
    // So that it is not claimed again once it is lost.
    rk.stop();
    // The hold ends by a call that this worker did not make.
    await admin.claims.release(hold.claimId);
    await until(hold.signal);
    const tally = await running;
    assert.deepEqual(reasons, ["cancelled", "lease_lost"]);
    assert.equal(tally.cancelled, 1);
    assert.equal(tally.lost, 1);
    assert.equal(tally.completed, 0);
    assert.equal((await admin.tasks.get(lost.taskId)).state, "available");
  });

  test("a stop lets handlers finish, and gives back what does not", async () => {
    const { queue } = await place();
    const rk = new RedKey(quiet);
    const begun: string[] = [];
    let interrupted: unknown;
    rk.worker({
      queue,
      concurrency: 2,
      handler: async (ctx) => {
        begun.push(ctx.task.title ?? "");
        if (ctx.task.title === "finishes") return until(ctx.stopping).then(() => "done");
        await until(ctx.signal);
        interrupted = ctx.signal.reason;
        throw ctx.signal.reason;
      },
    });
    // Long enough for the end of what finishes to be told on a busy machine.
    const running = rk.run({ graceSeconds: 5 });
    const tasks = await Promise.all(["finishes", "hangs"].map((title) => admin.tasks.create(queue, { title })));
    while (begun.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    rk.stop();
    const tally = await running;
    assert.equal(tally.completed, 1);
    assert.equal(tally.released, 1);
    assert.equal((interrupted as redkey.WorkInterrupted).code, "stopped");
    const states = await Promise.all(tasks.map(async ({ taskId }) => (await admin.tasks.get(taskId)).state));
    assert.deepEqual(states, ["completed", "available"]);
    const agents = [];
    for await (const agent of admin.agents.list({ active: true }))
      if (agent.slug.startsWith(queue)) agents.push(agent.slug);
    assert.deepEqual(agents, [], "an agent without a name is deactivated at the end");
  });

  test("a hold without a handler lives by heartbeats until it is ended, once", async () => {
    const { queue, agentId } = await place();
    assert.equal((await admin.hold(queue, { agentId })).status, "no_tasks");
    await admin.tasks.create(queue, { title: "T", outputs: ["packet"] });
    const hold = await admin.hold(queue, { agentId, leaseSeconds: 5 });
    assert.ok(hold.status === "claimed");
    await hold.start();
    const ended = hold.complete({ output: 1 });
    await assert.rejects(hold.release(), { code: "claim_ended" });
    await assert.rejects(ended, { code: "missing_artifact" });
    await hold.artifact("packet", { facts: 1 });
    // Longer than the lease: only heartbeats can have kept it.
    await new Promise((resolve) => setTimeout(resolve, 6000));
    assert.equal(hold.leaseLost, false);
    assert.equal((await hold.complete({ output: 1 })).status, "completed");
    await assert.rejects(hold.fail("again"), { code: "claim_ended" });
    const types: string[] = [];
    for await (const event of admin.tasks.events(hold.task.taskId)) types.push(event.type);
    assert.ok(types.includes("task.lease_extended"), String(types));
    assert.ok(!types.includes("task.lease_expired"), String(types));
  });

  test("one task is held by its id, a lost race is a result, and its end is told once under one key", async () => {
    const { queue, agentId } = await place();
    const other = await admin.enlist({ agent: { name: `other-${queue}`, version: "1" }, queue, framework: "tests" });
    assert.equal((await admin.agents.get(other)).framework, "tests");
    assert.equal(await admin.enlist({ agent: { version: "1", name: `other-${queue}` }, queue }), other);
    const { taskId } = await admin.tasks.create(queue, { title: "T", outputs: ["packet"] });
    const holds = await Promise.all([agentId, other].map((agent) => admin.holdTask(taskId, { agentId: agent })));
    assert.deepEqual(holds.map((one) => one.status).sort(), ["claimed", "missed"]);
    const hold = holds.find((one) => one.status === "claimed");
    assert.ok(hold);
    await hold.progress("Half of it is done.", 50);
    const { progress } = await admin.tasks.get(taskId);
    assert.deepEqual([progress?.text, progress?.percent], ["Half of it is done.", 50]);
    const output = await hold.fill({ packet: { facts: 1 }, more: true });
    assert.deepEqual(output, { more: true });
    const reason = new Error("enough");
    await assert.rejects(hold.complete({ output }, { signal: AbortSignal.abort(reason) }), (error) => error === reason);
    const idempotencyKey = `${hold.claimId}-complete`;
    const ended = await hold.complete({ output }, { idempotencyKey });
    assert.deepEqual(await admin.claims.complete(hold.claimId, { output }, { idempotencyKey }), ended);
  });

  test("a hold without a handler stalls when its holder does nothing, and its next act takes the task up again", async () => {
    const { queue, agentId } = await place();
    await admin.queues.update(queue, { idleSeconds: 1 });
    const { taskId } = await admin.tasks.create(queue, { title: "T" });
    const stall = async (after: number) => {
      for await (const event of admin.events.follow({ types: "task.stalled", queueId: queue, after })) return event;
      return assert.fail("the stream ended");
    };
    const hold = await admin.hold(queue, { agentId, leaseSeconds: 5 });
    assert.ok(hold.status === "claimed");
    const first = await stall(0);
    assert.equal(first.subject.id, taskId);
    await hold.start();
    assert.equal((await admin.tasks.get(taskId)).state, "working");
    await stall(first.sequence);
    const other = await place();
    const taken = await admin.holdTask(taskId, { agentId: other.agentId });
    assert.ok(taken.status === "claimed");
    await assert.rejects(hold.complete(), redkey.LeaseLost);
    assert.equal(hold.leaseLost, true);
    assert.equal((await taken.complete()).status, "completed");
  });

  test("a holder that hears nothing for a lease is told to stop, and the server decides what its end is worth", async () => {
    const { queue, agentId } = await place();
    await admin.tasks.create(queue, { title: "T" });
    const deaf: typeof fetch = (input, init) =>
      String(input).endsWith("/heartbeat") ? Promise.reject(new TypeError("cut")) : fetch(input, init);
    // The lease counts from when it was asked for, however late the answer is.
    const begun = performance.now();
    const hold = await new RedKey({ ...quiet, fetch: deaf }).hold(queue, { agentId, leaseSeconds: 5 });
    assert.ok(hold.status === "claimed");
    await until(hold.signal);
    assert.ok(performance.now() - begun > 4000);
    assert.equal((hold.signal.reason as redkey.WorkInterrupted).code, "lease_lost");
    assert.equal(hold.lease.end, undefined);
    // Nobody took it meanwhile.
    assert.equal((await hold.complete()).status, "completed");
  });

  test("a hold that was waited for longer than its lease lasts is whole", async () => {
    const { queue, agentId } = await place();
    const holding = admin.hold(queue, { agentId, leaseSeconds: 5, wait: 10 });
    await new Promise((resolve) => setTimeout(resolve, 5500));
    await admin.tasks.create(queue, { title: "T" });
    const hold = await holding;
    assert.ok(hold.status === "claimed");
    assert.equal(hold.leaseLost, false);
    assert.equal(hold.signal.aborted, false);
    assert.equal((await hold.complete()).status, "completed");
  });

  test("a wrong key, an expired token and a revoked key are Unauthorized, for calls, streams and workers", async () => {
    const { queue } = await place();
    const [workspace] = (await admin.workspaces.list().page()).items;
    const revoked = await admin.keys.create(workspace!.workspaceId, { scopes: ["admin"] });
    await new RedKey({ ...quiet, apiKey: revoked.apiKey }).queues.get(queue);
    await admin.keys.revoke(workspace!.workspaceId, revoked.keyId);
    const keys = [
      "rk_0000000000000000_secretsecretsecret",
      process.env["EXPIRED_TOKEN"] ?? "",
      "nonsense",
      revoked.apiKey,
    ];
    for (const apiKey of keys) {
      const rk = new RedKey({ ...quiet, apiKey });
      await assert.rejects(rk.queues.get(queue), redkey.Unauthorized);
      await assert.rejects(rk.events.follow().next(), redkey.Unauthorized);
      rk.worker({ queue, handler: () => 1 });
      await assert.rejects(rk.run(), redkey.Unauthorized);
    }
  });

  test("a task is waited for until it ends, and a signal ends the wait", async () => {
    const { queue, agentId } = await place();
    const { taskId } = await admin.tasks.create(queue, { title: "T", approvalGate: true });
    const won = await admin.queues.claimNext(queue, { agentId });
    assert.ok(won.status === "claimed");
    await assert.rejects(admin.tasks.wait(taskId, { signal: AbortSignal.timeout(100) }), { name: "TimeoutError" });
    const waiting = admin.tasks.wait(taskId);
    const { gateId } = await admin.claims.complete(won.claimId, { output: 1 });
    assert.ok(gateId);
    // A completion that waits for approval has not ended: it may be sent back.
    await assert.rejects(admin.tasks.wait(taskId, { timeoutSeconds: 0.3 }), redkey.TimedOut);
    await admin.gates.approve(gateId);
    assert.equal((await waiting).state, "completed");
    await assert.rejects(admin.tasks.wait("task_01J00000000000000000000000"), redkey.NotFound);
  });

  test("a receipt of the server verifies, and a changed one does not", async () => {
    const { queue } = await place();
    const { eventId } = await admin.tasks.create(queue, { title: "T" });
    let receipt = await admin.receipts.get(eventId);
    while (receipt.verification.status === "pending") {
      await new Promise((resolve) => setTimeout(resolve, 50));
      receipt = await admin.receipts.get(eventId);
    }
    const { keys } = await admin.checkpoints.latest();
    const verdict = await verifyReceipt(receipt, { keys });
    assert.equal(verdict.passed, true, JSON.stringify(verdict));
    assert.equal(verdict.event?.eventId, eventId);
    const changed = await verifyReceipt({ ...receipt, type: "task.complete" }, { keys });
    assert.equal(changed.passed, false);
    assert.equal(changed.findings[0]?.code, "field_mismatch");
  });
});
