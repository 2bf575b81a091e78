/** Eight workers, each an agent of its own, that note every task they begin: `race.js QUEUE FILE`, until SIGTERM. */
import { appendFileSync } from "node:fs";
import { RedKey } from "../src/index.js";

const [, , queue = "", file = ""] = process.argv;
const runs = Array.from({ length: 8 }, async () => {
  const rk = new RedKey({ log: (line) => void (process.env["RACE_LOG"] && console.error(line)) });
  rk.worker({
    queue,
    leaseSeconds: 30,
    handler: (ctx) => {
      appendFileSync(file, `${ctx.task.taskId} ${ctx.claimId}\n`);
      return "typescript";
    },
  });
  return rk.run();
});
const tallies = await Promise.all(runs);
console.log(JSON.stringify(tallies));
