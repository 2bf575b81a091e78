/** Judge receipts: takes a file with cases, writes a file with verdicts. */
import { readFileSync, writeFileSync } from "node:fs";
import { verifyReceipt, type Policy } from "../src/receipts/index.js";

interface Question {
  policies: Record<string, Policy>;
  cases: Array<{ receipt: string; policy: string }>;
}

const [, , from = "", to = ""] = process.argv;
const { policies, cases } = JSON.parse(readFileSync(from, "utf8")) as Question;
const verdicts = [];
for (const { receipt, policy } of cases) {
  const { passed, levels, findings, event, effect } = await verifyReceipt(
    Buffer.from(receipt, "base64"),
    policies[policy],
  );
  const held = Object.fromEntries(Object.entries(levels).map(([name, level]) => [name, level.holds]));
  verdicts.push({ passed, levels: held, codes: findings.map((one) => one.code), event, effect });
}
writeFileSync(to, JSON.stringify(verdicts));
