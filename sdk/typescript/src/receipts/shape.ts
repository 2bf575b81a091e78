/** The shape of a receipt: its fields and no others. */
import { Refused, type Json } from "./json.js";
import type { Internal, ProvenEvent } from "./records.js";

/** A receipt that has the right shape but is not verified. */
export interface ReceiptParts extends ProvenEvent {
  verification: { status: "verified" | "pending"; provider: string; receiptUrl: string };
  effect: { status: "applied" | "void"; reason?: string | null };
  levels: Record<"integrity" | "signed" | "witnessed" | "anchored", boolean>;
  offline?: {
    wire: string;
    internal: Internal;
    proof: string;
    signers?: Array<{ key: string; added: number; retired?: number | null }>;
    content?: string[];
    anchor?: Json[];
    order?: { network: string; topic: string; sequence?: number; until: number } | null;
    attestation?: string[];
  } | null;
}

/** A name of a type, allowed words, a list of one shape, or the fields of an object: `?` may be absent, `??` null too. */
type Shape = "string" | "integer" | "boolean" | "object" | Set<string> | [Shape] | { [field: string]: Shape };

const PARTY: Shape = { type: "string", id: "string" };
const RECEIPT: Shape = {
  eventId: "string",
  type: "string",
  sequence: "integer",
  timestamp: "string",
  actor: PARTY,
  subject: PARTY,
  verification: { status: new Set(["verified", "pending"]), provider: "string", receiptUrl: "string" },
  effect: { status: new Set(["applied", "void"]), "reason??": "string" },
  levels: { integrity: "boolean", signed: "boolean", witnessed: "boolean", anchored: "boolean" },
  "offline??": {
    wire: "string",
    internal: {
      topicId: "string",
      payer: "string",
      consensusTimestamp: "string",
      previousRunningHash: "string",
      runningHash: "string",
    },
    proof: "string",
    "signers?": [{ key: "string", added: "integer", "retired??": "integer" }],
    "content?": ["string"],
    "anchor?": ["object"],
    "order??": { network: "string", topic: "string", "sequence??": "integer", until: "integer" },
    "attestation?": ["string"],
  },
};

/** Return the receipt in a document; Refused if it is not one. */
export function checkReceipt(document: Json): ReceiptParts {
  conform(document, RECEIPT, "");
  return document as unknown as ReceiptParts;
}

function conform(value: Json | undefined, shape: Shape, pointer: string): void {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  if (shape instanceof Set) {
    if (!shape.has(value as string)) throw wrong("a word that is not allowed", pointer);
  } else if (Array.isArray(shape)) {
    if (!Array.isArray(value)) throw wrong("a list is needed", pointer);
    value.forEach((item, index) => conform(item, shape[0], `${pointer}/${index}`));
  } else if (typeof shape === "string") {
    const isRight =
      shape === "integer" ? Number.isInteger(value) : shape === "object" ? isObject : typeof value === shape;
    if (!isRight) throw wrong(`${shape} is needed`, pointer);
  } else {
    if (!isObject) throw wrong("an object is needed", pointer);
    const known = Object.entries(shape).map(([field, part]) => [field.replace(/\?+$/, ""), field, part] as const);
    const unknown = Object.keys(value).find((name) => !known.some(([known]) => known === name));
    if (unknown !== undefined) throw wrong(`the field ${unknown} is unknown`, pointer);
    for (const [name, field, part] of known) {
      const item = value[name];
      const isOptional = (item === undefined && field.endsWith("?")) || (item === null && field.endsWith("??"));
      if (!isOptional) conform(item, part, `${pointer}/${name}`);
    }
  }
}

function wrong(what: string, pointer: string): Refused {
  return new Refused(`not a receipt: ${what}`, "receipt_malformed", pointer);
}
