/** Tasks as those see them who create them, against a real server: results, ends, batches, policies of retries. */
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import * as redkey from "../src/index.js";
import { answer, scripted } from "./scripted.js";

const rk = new redkey.RedKey();
let agentId = "";
let numbered = 0;

before(async () => {
  ({ agentId } = await rk.agents.register({ agentCard: { name: "tasks", description: "T", version: "1" } }));
});

/** A queue for one test. */
async function place(): Promise<string> {
  return (await rk.queues.create({ name: `tasks-${++numbered}` })).queueId;
}

async function claim(queue: string): Promise<string> {
  const found = await rk.queues.claimNext(queue, { agentId, wait: 30 });
  assert.ok(found.status === "claimed", JSON.stringify(found));
  return found.claimId;
}

describe("waiting", { concurrency: true }, () => {
  test("a created task gives its result, again and again, and its reply is as it came", async () => {
    const queue = await place();
    const created = await rk.tasks.create(queue, { title: "Add", input: { a: 1 } });
    assert.ok(!Object.keys(created).includes("result"));
    const result = created.result({ timeoutSeconds: 60 });
    await rk.claims.complete(await claim(queue), { output: { sum: 3 } });
    assert.deepEqual(await result, { sum: 3 });
    assert.deepEqual(await created.result(), { sum: 3 });
  });

  test("a failed and a cancelled task say why", async () => {
    const queue = await place();
    const failed = await rk.tasks.create(queue, { title: "Add" });
    await rk.claims.fail(await claim(queue), { reason: "no figures" });
    const gone = await rk.tasks.create(queue, { title: "Other" });
    await rk.tasks.cancel(gone.taskId);
    await assert.rejects(failed.result(), (error: redkey.WorkFailed) => {
      assert.ok(error instanceof redkey.WorkFailed);
      assert.equal(error.message, `${failed.taskId} (Add) failed (error): no figures`);
      return error.code === "task_failed";
    });
    await assert.rejects(gone.result(), { name: "WorkFailed", code: "task_cancelled" });
  });

  test("attempts that are followed by others are no end, and the pause between them is the task's own", async () => {
    const queue = await place();
    const retry = { maxAttempts: 2, delaySeconds: 1, backoff: 1, jitter: 0 };
    const created = await rk.tasks.create(queue, { title: "Add", retry });
    const result = created.result({ timeoutSeconds: 60 });
    await rk.claims.fail(await claim(queue), { reason: "first" });
    assert.equal((await rk.tasks.explain(created.taskId)).reasons[0]?.code, "retry_pause");
    await rk.claims.complete(await claim(queue), { output: 2 });
    assert.equal(await result, 2);
  });

  test("many tasks are given in the order that was asked for, and each as it ends", async () => {
    const queue = await place();
    const ids: string[] = [];
    for (let number = 0; number < 3; number++) ids.push((await rk.tasks.create(queue, { title: "T" })).taskId);
    for (let number = 0; number < 3; number++) await rk.claims.complete(await claim(queue), { output: number });
    const tasks = await rk.tasks.wait([...ids].reverse());
    assert.deepEqual(
      tasks.map((task) => task.output),
      [2, 1, 0],
    );
    const ended: string[] = [];
    for await (const task of rk.tasks.asEnded(ids)) ended.push(task.taskId);
    assert.deepEqual(ended, ids);
    assert.deepEqual(await rk.tasks.wait([]), []);
  });

  test("a wait ends when its time is over, and names what has not ended", async () => {
    const queue = await place();
    const { taskId } = await rk.tasks.create(queue, { title: "T" });
    await assert.rejects(rk.tasks.wait([taskId], { timeoutSeconds: 0.2 }), (error: redkey.TimedOut) => {
      assert.ok(error instanceof redkey.TimedOut);
      return error.message === `1 of 1 tasks have not ended after 0.2 s: ${taskId}`;
    });
    const reason = new Error("enough");
    await assert.rejects(rk.tasks.wait(taskId, { signal: AbortSignal.abort(reason) }), reason);
  });

  test("one name for a filter: what is followed and what is listed", async () => {
    const queue = await place();
    const { taskId } = await rk.tasks.create(queue, { title: "T" });
    const type = "task.created";
    const listed = (await rk.tasks.events(taskId, { type }).page()).items[0];
    for await (const event of rk.events.follow({ type, queueId: queue, after: 0 })) {
      assert.deepEqual(event, listed);
      break;
    }
  });

  test("extensions and the lineage of a task are given and read again", async () => {
    const queue = await place();
    const data = (of: string) => ({ "com.example.shop": { of, at: [1, null] } });
    const { taskId: parentTaskId } = await rk.tasks.create(queue, { title: "Whole" });
    const lineage = { correlationId: "order:4711", parentTaskId, referenceTaskIds: [parentTaskId] };
    const extensions = data("task.created");
    const { taskId } = await rk.tasks.create(queue, { title: "Part", ...lineage, extensions });
    const { correlationId, referenceTaskIds, ...found } = await rk.tasks.get(taskId);
    assert.deepEqual({ correlationId, parentTaskId: found.parentTaskId, referenceTaskIds }, lineage);
    assert.deepEqual(found.extensions, extensions);
    await rk.tasks.cancel(taskId, { extensions: data("task.cancelled") });
    const events = (await rk.tasks.events(taskId, { type: "task.created,task.cancelled" }).page()).items;
    assert.deepEqual(
      events.map(({ type, extensions }) => [type, extensions]),
      ["task.created", "task.cancelled"].map((type) => [type, data(type)]),
    );
    await assert.rejects(rk.tasks.create(queue, { title: "Part", extensions: { mine: 1 } }), redkey.Invalid);
  });
});

describe("batches", () => {
  test("a batch of any size is split, and one key is one batch", async () => {
    const queue = await place();
    const tasks = Array.from({ length: 501 }, (_, number) => ({ title: `T${number}` }));
    const created = await rk.tasks.createMany(queue, { tasks }, { idempotencyKey: `batch-${queue}` });
    const again = await rk.tasks.createMany(queue, { tasks }, { idempotencyKey: `batch-${queue}` });
    assert.deepEqual(again.items, created.items);
    assert.equal(new Set(created.items.map((one) => one.task?.taskId)).size, 501);
    assert.equal((await rk.queues.counts(queue)).tasks["available"], 501);
  });

  test("a batch is split by its bytes", async () => {
    const tasks = Array.from({ length: 30 }, () => ({ title: "T", input: "x".repeat(60_000) }));
    assert.equal((await rk.tasks.createMany(await place(), { tasks })).items.length, 30);
  });

  test("a refused part says how many came before", async () => {
    const tasks = Array.from({ length: 600 }, () => ({ title: "T" }));
    const refused = { code: "invalid_field", detail: "No.", errors: [{ code: "missing", pointer: "/title", message: "It is." }] };
    const steps = [answer(200, { items: Array.from({ length: 500 }, () => ({})) }), answer(422, refused)];
    await scripted(steps, async (client, heard) => {
      await assert.rejects(client.tasks.createMany("q", { tasks }), (error: redkey.Invalid) => {
        assert.equal(error.handledBefore, 500);
        return error.message === "No.\n  /title: It is. [missing]";
      });
      const keys = heard.map((one) => one.headers["idempotency-key"]);
      assert.equal(keys[1], `${keys[0]}-2`);
    });
  });
});

test("retries outlast a server that restarts", async () => {
  const begun = performance.now();
  const steps = [...Array.from({ length: 12 }, () => answer(503, {}, { "retry-after": "0" })), answer(200, { status: "ok" })];
  await scripted(steps, async (client, heard) => {
    assert.deepEqual(await client.server.health(), { status: "ok" });
    assert.equal(heard.length, 13);
  });
  assert.ok(performance.now() - begun < 60_000);
});

test("a worker acts as its agent, and what a handler logs names its task", async () => {
  const queue = await place();
  const said: string[] = [];
  const worker = new redkey.RedKey({ log: (message) => said.push(message) });
  worker.worker({
    queue,
    agent: "talker",
    roles: ["talking"],
    handler: (ctx) => {
      ctx.log("half of it is done");
      if (ctx.task.title === "Bad") throw new redkey.Fail("no\nink");
    },
  });
  const running = worker.run();
  const created = await rk.tasks.create(queue, { title: "Write the intro" });
  await created.result({ timeoutSeconds: 60 });
  const actors: Record<string, string> = {};
  for await (const { type, actor } of rk.tasks.events(created.taskId)) actors[type] = actor.type;
  assert.equal(actors["task.created"], "human");
  assert.deepEqual([actors["task.started"], actors["task.complete"]], ["agent", "agent"]);
  await assert.rejects((await rk.tasks.create(queue, { title: "Bad" })).result({ timeoutSeconds: 60 }), /no\nink/);
  worker.stop();
  await running;
  assert.ok(said.includes("Write the intro: half of it is done"), said.join("\n"));
  const told = said.filter((line) => line.startsWith("talker ")).map((line) => line.replace(/\d+\.\d s/, "N s"));
  assert.deepEqual(told, [
    `talker waiting on ${queue} (talking)`,
    "talker claimed Write the intro",
    "talker done Write the intro after N s",
    "talker claimed Bad",
    "talker failed Bad after N s: no ink",
  ]);
});
