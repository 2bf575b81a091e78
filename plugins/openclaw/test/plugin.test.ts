/** The tools and the service without a gateway, against a real server: `REDKEY_URL` and `REDKEY_API_KEY` name it. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { RedKey } from "redkey";
import { parseConfig, type Config } from "../src/config.js";
import { Gateway } from "../src/gateway.js";
import { invoke } from "../src/invoke.js";
import { TOOLS } from "../src/tools.js";

type Result = Record<string, any>;

const quiet = { info: () => undefined, warn: () => undefined };
const admin = new RedKey({ log: () => undefined });
const folders: string[] = [];
const gateways: Gateway[] = [];
let count = 0;

after(async () => {
  await Promise.all(gateways.map((gateway) => gateway.stop()));
  folders.forEach((folder) => rmSync(folder, { recursive: true }));
});

function stateDirectory(): string {
  const folder = mkdtempSync(join(tmpdir(), "redkey-openclaw-"));
  folders.push(folder);
  return folder;
}

function newQueue(): string {
  return `q-${process.pid}-${++count}`;
}

/** A gateway with an agent that works a queue of its own. */
function place(config: Config = {}, directory = stateDirectory()) {
  const queue = config.queue ?? newQueue();
  const given = { url: admin.url, apiKey: process.env["REDKEY_API_KEY"]!, leaseSeconds: 30, ...config, queue };
  const gateway = new Gateway(parseConfig(given), directory, quiet);
  gateways.push(gateway);
  const call = (name: string, args: unknown = {}, agent = "main", signal?: AbortSignal): Promise<Result> =>
    invoke(
      TOOLS.find((tool) => tool.name === `redkey_${name}`)!,
      gateway,
      agent,
      args,
      signal,
    );
  return { queue, gateway, call, directory };
}

const isProblem = (pattern: RegExp) => (error: Error) => {
  assert.equal(error.name, "ToolInputError");
  assert.match(error.message, pattern);
  return true;
};

describe("side by side", { concurrency: true }, () => {
  test("arguments are checked before anything is sent, and every mistake is named", async () => {
    // Nothing listens there: an argument that is let through would be another error.
    const { call } = place({ url: "http://127.0.0.1:1" });
    const wrong: Array<[string, unknown, RegExp]> = [
      ["claim_next", { colour: "red" }, /There is no "colour" here; it takes: queue, taskId, waitSeconds/],
      ["claim_next", { waitSeconds: 51 }, /"waitSeconds" must be from 0 to 50/],
      ["claim_next", { waitSeconds: "5" }, /"waitSeconds" must be a number/],
      ["claim_next", { waitSeconds: NaN }, /"waitSeconds" must be from 0 to 50/],
      ["claim_next", { queue: " " }, /"queue" must not be empty/],
      ["claim_next", [], /The arguments must be an object/],
      ["claim_next", JSON.parse('{"__proto__": 1}'), /There is no "__proto__"/],
      ["complete", { claimId: 7 }, /"claimId" must be a string/],
      ["fail", {}, /"reason" is missing/],
      ["fail", { reason: "x".repeat(8001) }, /at most 8000 characters/],
      ["fail", { reason: "r", kind: "bad" }, /must be one of error, timeout, verification, rejected/],
      ["block", { blockerType: "x", extra: 1 }, /"question" is missing.*"blockerType" must be one of.*"extra"/],
      ["progress", { text: "t", percent: 101 }, /"percent" must be from 0 to 100/],
      ["create_task", { title: "t", requiredRoles: ["a", 5] }, /"requiredRoles"\[1\] must be a string/],
      ["start_plan", {}, /either "plan" or "definitionId"/],
      ["start_plan", { plan: "{" }, /"plan" is not JSON/],
      ["start_plan", { plan: [1] }, /must be a JSON object/],
      ["explain", {}, /"taskId" is missing/],
    ];
    const usable = place();
    for (const [tool, args, pattern] of wrong) {
      await assert.rejects((tool === "start_plan" ? usable : { call }).call(tool, args), isProblem(pattern));
    }
  });

  test("a configuration is refused with what is wrong in it", () => {
    assert.throws(() => parseConfig({ leaseSeconds: 4, colour: 1 }), /"leaseSeconds" must be from 5.*"colour"/);
    assert.throws(() => parseConfig({ agents: { a: { roles: "x" } } }), /"roles" must be an array/);
    assert.throws(() => parseConfig({ agents: { a: { agentId: "agt_1" } } }), /both agentId and apiKey/);
    assert.deepEqual(parseConfig(undefined), {});
  });

  test("a task is claimed and completed by the agent itself; the same call again has the same answer", async () => {
    const { call, gateway } = place({ roles: ["writer"] });
    const created = await call("create_task", { title: "Write", outputs: ["letter"], requiredRoles: ["writer"] });
    const { claim } = await call("claim_next");
    assert.equal(claim.status, "claimed");
    assert.equal(claim.task.taskId, created["task"].taskId);
    assert.match(claim.next, /redkey_complete.*"output": letter/);
    const said = { output: { letter: "Dear Ida", pages: 1 }, summary: "One page." };
    await assert.rejects(call("complete", { output: null }), isProblem(/missing_artifact/));
    const [done, beside] = await Promise.all([call("complete", said), call("complete", said)]);
    assert.deepEqual(beside, done);
    assert.equal(done["task"].status, "completed");
    assert.deepEqual(await call("complete", said), done);
    assert.deepEqual(await call("complete", { ...said, claimId: claim.claimId }), { ...done });
    await assert.rejects(call("fail", { reason: "late" }), isProblem(/You hold no task/));
    await assert.rejects(call("fail", { reason: "late", claimId: claim.claimId }), isProblem(/has ended/));
    const shown = await call("explain", { taskId: claim.task.taskId });
    assert.equal(shown["task"].state, "completed");
    assert.deepEqual(shown["task"].output, { pages: 1 });
    const { agentId } = await gateway.identities.of("main");
    const event = await admin.events.get(done["task"].eventId);
    assert.deepEqual(event.actor, { type: "agent", id: agentId }, "the ledger names the agent");
    assert.equal((await admin.agents.get(agentId)).framework, "openclaw");
  });

  test("a miss, a rejection and an empty queue are results with one sentence", async () => {
    const one = place();
    const other = place({ queue: one.queue });
    const { claim: none } = await one.call("claim_next");
    assert.equal(none.status, "no_tasks");
    assert.match(none.next, /nothing for you/);
    const { task } = await one.call("create_task", { title: "Race" });
    const { claim: won } = await one.call("claim_next", { taskId: task.taskId });
    assert.equal(won.status, "claimed");
    const { claim: missed } = await other.call("claim_next", { taskId: task.taskId });
    assert.equal(missed.status, "missed");
    assert.match(missed.next, /won this task: do not try it again\. Call redkey_claim_next/);
    await admin.roles.create({ name: `r-${one.queue}` });
    const { task: closed } = await one.call("create_task", { title: "C", requiredRoles: [`r-${one.queue}`] });
    const { claim: rejected } = await other.call("claim_next", { taskId: closed.taskId });
    assert.equal(rejected.status, "rejected");
    assert.match(rejected.next, /may not claim/);
    await assert.rejects(other.call("claim_next", { taskId: "task_none" }), isProblem(/not_found/));
  });

  test("a wait ends with the task that comes, and a call that is given up gives its task back", async () => {
    const { call, queue } = place();
    await call("claim_next");
    const waiting = call("claim_next", { waitSeconds: 50 });
    const { taskId } = await admin.tasks.create(queue, { title: "T" });
    const { claim } = await waiting;
    assert.equal(claim.task.taskId, taskId);
    await call("fail", { reason: "no", kind: "rejected" });
    const controller = new AbortController();
    const given = call("claim_next", { waitSeconds: 50 }, "main", controller.signal);
    const reason = new Error("the user left");
    controller.abort(reason);
    const second = await admin.tasks.create(queue, { title: "T" });
    await assert.rejects(given, (error) => error === reason);
    assert.equal((await admin.tasks.get(second.taskId)).state, "available");
  });

  test("a block asks, and progress is seen by those who watch", async () => {
    const { call } = place();
    const { task } = await call("create_task", { title: "Which?", input: { guest: "Ida" } });
    await call("claim_next");
    await call("progress", { text: "Half of it.", percent: 50 });
    const { progress } = await admin.tasks.get(task.taskId);
    assert.deepEqual([progress?.text, progress?.percent], ["Half of it.", 50]);
    const { task: blocked } = await call("block", { question: "Which Ida?" });
    assert.equal(blocked.status, "blocked");
    await admin.tasks.unblock(task.taskId, { answer: "The tall one." });
    const { claim } = await call("claim_next", { waitSeconds: 50 });
    assert.equal(claim.task.answer, "The tall one.");
    assert.equal((await call("fail", { reason: "She is away." }))["task"].status, "failed");
  });

  test("a plan is started, its steps see what came before, and a wrong plan is refused with every mistake", async () => {
    const { call } = place({ roles: ["producer"] });
    const step = (id: string, dependsOn: string[], output: string) => ({
      id,
      title: id,
      role: "producer",
      dependsOn,
      outputs: [output],
      completionCriteria: ["It is there"],
    });
    const plan = {
      version: "1.0",
      name: "two-steps",
      roles: { producer: { description: "Does it." } },
      tasks: [step("first", [], "brief"), step("second", ["first"], "script")],
      policies: { maxParallelTasks: 2, retry: { maxAttempts: 1, onFailure: "fail" } },
    };
    await assert.rejects(
      call("start_plan", { plan: { ...plan, tasks: [step("a", ["b"], ""), step("a", [], "x")] } }),
      isProblem(/\/tasks.*\n.*\/tasks/),
    );
    const { plan: started } = await call("start_plan", { plan: JSON.stringify(plan), input: { guest: "Ida" } });
    assert.equal(started.status, "running");
    const { claim: first } = await call("claim_next", { waitSeconds: 50 });
    assert.deepEqual(first.task.workflowInput, { guest: "Ida" });
    await call("complete", { output: "The brief." });
    const { claim: second } = await call("claim_next", { waitSeconds: 50 });
    assert.equal(second.upstream[0].content, "The brief.");
    await call("complete", { output: { script: "x".repeat(20) } });
    assert.equal((await admin.workflows.get(started.workflowId)).status, "completed");
  });

  test("heartbeats keep a claim, a stop gives it back, and late calls are refused", async () => {
    const { call, gateway, queue } = place({ leaseSeconds: 5 });
    await gateway.start(["main", "writer"]);
    const { taskId } = await admin.tasks.create(queue, { title: "T" });
    await call("claim_next");
    for await (const event of admin.events.follow({ types: "task.lease_extended", queueId: queue, after: 0 })) {
      assert.equal(event.subject.id, taskId);
      break;
    }
    const waiting = call("claim_next", { waitSeconds: 50 }, "writer");
    const refused = assert.rejects(waiting, isProblem(/stopping/));
    await gateway.stop();
    await refused;
    assert.equal((await admin.tasks.get(taskId)).state, "available");
    await assert.rejects(call("claim_next"), isProblem(/stopping/));
  });

  test("an agent keeps its name and its claims over a restart, and two gateways are two agents", async () => {
    const first = place({ leaseSeconds: 60 });
    const { task } = await first.call("create_task", { title: "T" });
    const { claim } = await first.call("claim_next");
    const { agentId } = await first.gateway.identities.of("main");
    // The first gateway is gone without a word.
    const again = place({ queue: first.queue, leaseSeconds: 60 }, first.directory);
    assert.equal((await again.gateway.identities.of("main")).agentId, agentId);
    const other = place({ queue: first.queue });
    assert.notEqual((await other.gateway.identities.of("main")).agentId, agentId);
    await assert.rejects(other.call("complete", { claimId: claim.claimId }), isProblem(/You hold no claim/));
    const done = await again.call("complete", { claimId: claim.claimId, output: "done" });
    assert.equal(done["task"].taskId, task.taskId);
    assert.equal((await admin.tasks.get(task.taskId)).completedBy, agentId);
    const file = join(first.directory, "redkey", "agents.json");
    assert.equal(statSync(file).mode & 0o777, 0o600);
    assert.doesNotMatch(readFileSync(file, "utf8"), new RegExp(process.env["REDKEY_API_KEY"]!));
  });

  test("an agent cannot end what another agent of the gateway holds, and names one of several", async () => {
    const { call } = place();
    const tasks = [await call("create_task", { title: "A" }), await call("create_task", { title: "B" })];
    assert.equal(tasks.length, 2);
    const { claim: a } = await call("claim_next");
    await assert.rejects(call("complete", { claimId: a.claimId }, "writer"), isProblem(/held by the agent main/));
    const { claim: b } = await call("claim_next");
    assert.deepEqual(b.alsoHeld, [{ claimId: a.claimId, title: a.task.title }]);
    await assert.rejects(call("complete"), isProblem(/several tasks.*claimId/));
    await call("complete", { claimId: b.claimId });
    await call("complete");
  });

  test("a claim that was taken away is an answer, and the task is taken up again when it is free", async () => {
    const { call, gateway, queue } = place();
    const other = place({ queue });
    await gateway.identities.of("main");
    const { taskId } = await admin.tasks.create(queue, { title: "T" });
    const { claim } = await call("claim_next");
    await admin.claims.release(claim.claimId);
    await gateway.holds.of("main")[0]?.beat();
    assert.deepEqual(gateway.holds.of("main"), []);
    await call("progress", { text: "Still at it.", claimId: claim.claimId });
    assert.equal((await admin.tasks.get(taskId)).state, "working");
    assert.equal(gateway.holds.of("main").length, 1);
    await admin.claims.release(gateway.holds.of("main")[0]!.claimId);
    assert.equal((await other.call("claim_next"))["claim"].status, "claimed");
    await assert.rejects(call("complete", { claimId: claim.claimId }), isProblem(/changes nothing|has ended/));
  });

  test("a claim of a model that went silent opens to others; a call in time goes on with it", async () => {
    const { call, gateway, queue } = place({ leaseSeconds: 5 });
    const other = place({ queue });
    await gateway.identities.of("main");
    await admin.queues.update(queue, { idleSeconds: 1 });
    const { taskId } = await admin.tasks.create(queue, { title: "T" });
    const { claim } = await call("claim_next");
    const stall = async (after: number) => {
      for await (const event of admin.events.follow({ types: "task.stalled", queueId: queue, after })) return event;
      return assert.fail("the stream ended");
    };
    const { sequence } = await stall(0);
    await call("progress", { text: "Still thinking." });
    assert.equal(gateway.holds.of("main")[0]?.claimId, claim.claimId);
    await stall(sequence);
    assert.equal((await other.call("claim_next", { taskId }))["claim"].status, "claimed");
    await assert.rejects(call("complete", { claimId: claim.claimId }), isProblem(/claim has ended/));
  });

  test("a server that is gone, a wrong key and a broken file are answers with the next step", async () => {
    const gone = place({ url: "http://127.0.0.1:1" });
    await gone.gateway.start(["main"]);
    await assert.rejects(gone.call("claim_next"), isProblem(/does not answer.*call again.*config\.url/));
    const stranger = place({ apiKey: "rk_0000000000000000_secretsecretsecret" });
    await assert.rejects(stranger.call("claim_next"), isProblem(/refused the key.*config\.apiKey/));
    const broken = place();
    await broken.gateway.identities.of("main");
    writeFileSync(join(broken.directory, "redkey", "agents.json"), "{");
    await assert.rejects(broken.call("claim_next", {}, "writer"), isProblem(/agents\.json cannot be read.*remove it/));
  });

  test("work that is handed in while the server is away is recorded when it is back", async () => {
    let refused = 0;
    let isAway = false;
    // A way to the real server that can be cut.
    const proxy = createServer((socket) => {
      // Back after so many tries that the retries of one call are used up.
      if (isAway && ++refused > 8) isAway = false;
      const server = connect(Number(new URL(admin.url).port), "127.0.0.1");
      for (const end of [socket, server]) end.on("error", () => end.destroy()).on("close", () => server.destroy());
      if (isAway) socket.destroy();
      else socket.pipe(server).pipe(socket);
      cut.push(socket);
    });
    const cut: Socket[] = [];
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    const { call } = place({ url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` });
    const { task } = await call("create_task", { title: "T", outputs: ["letter"] });
    await call("claim_next");
    isAway = true;
    cut.forEach((socket) => socket.destroy());
    const done = await call("complete", { output: "Dear Ida" });
    assert.equal(done["task"].status, "completed");
    assert.ok(refused > 8);
    assert.equal((await admin.tasks.get(task.taskId)).artifacts?.length, 1);
    cut.forEach((socket) => socket.destroy());
    proxy.close();
  });

  test("a revoked key of an agent is replaced at the next call, and keys of the configuration are used as they are", async () => {
    const { call, gateway, queue } = place();
    const { agentId } = await gateway.identities.of("main");
    const [workspace] = (await admin.workspaces.list().page()).items;
    const { workspaceId } = workspace!;
    for await (const key of admin.keys.list(workspaceId)) {
      if (key.agentId === agentId) await admin.keys.revoke(workspaceId, key.keyId);
    }
    await assert.rejects(call("claim_next"), isProblem(/refused the key/));
    assert.equal((await call("claim_next"))["claim"].status, "no_tasks");
    const { apiKey } = await admin.keys.create(workspaceId, { scopes: ["agent"], agentId });
    const own = place({ queue, apiKey, agents: { main: { agentId, apiKey } } });
    assert.equal((await own.call("claim_next"))["claim"].agentId, agentId);
    await assert.rejects(own.call("claim_next", {}, "writer"), isProblem(/may not|key/));
    await assert.rejects(own.call("create_task", { title: "T" }), isProblem(/scope/));
  });

  test("two gateways, twenty tasks: twenty winners", async () => {
    const first = place();
    await first.gateway.identities.of("main");
    await admin.tasks.createMany(first.queue, { tasks: Array.from({ length: 20 }, () => ({ title: "T" })) });
    const won: string[] = [];
    await Promise.all(
      [first, place({ queue: first.queue })].flatMap(({ call }) =>
        ["main", "writer"].map(async (agent) => {
          for (;;) {
            const { claim } = await call("claim_next", {}, agent);
            if (claim.status === "no_tasks") return;
            assert.equal(claim.status, "claimed");
            won.push(claim.task.taskId);
            await call("complete", { claimId: claim.claimId }, agent);
          }
        }),
      ),
    );
    assert.equal(won.length, 20);
    assert.equal(new Set(won).size, 20);
  });
});
