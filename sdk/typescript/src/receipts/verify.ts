/**
 * Verify a receipt from only its bytes and the caller's keys: a second implementation of `redkey receipt verify`, which
 * also runs in browsers.
 *
 *     integrity   the record is in the checkpoint's tree, and the receipt matches the record
 *     signed      a key of the caller signed that checkpoint and the rest of the receipt
 *     witnessed   the caller's witnesses cosigned it: they saw the same history
 *     anchored    it is on a public topic, according to a mirror node's answer from the caller
 *
 * If integrity fails, all other levels fail. A key inside the receipt proves nothing.
 */
import { decode, Refused, utf8, type Json, type JsonObject } from "./json.js";
import {
  anchoredLevel,
  attested,
  attestedText,
  opinion,
  signedLevel,
  witnessedLevel,
  type Finding,
  type Level,
  type Opinion,
} from "./levels.js";
import * as notes from "./notes.js";
import type { Bytes, Proof, TrustedKey, VerifierKey } from "./notes.js";
import { eventAt, parseRow, readRecord, type ProvenEvent, type Row } from "./records.js";
import { checkReceipt, type ReceiptParts } from "./shape.js";

export type LevelName = "integrity" | "signed" | "witnessed" | "anchored";

/** The caller's inputs as text: keys as `redkey receipt keys` prints them, and rows of a mirror node. */
export interface Policy {
  keys?: readonly string[];
  witnesses?: readonly string[];
  /** How many witnesses must have cosigned; all of them by default. */
  quorum?: number;
  mirror?: readonly unknown[];
}

export interface Verdict {
  /** Whether integrity holds, and every level for which the caller provided keys or rows. */
  passed: boolean;
  levels: Record<LevelName, Level>;
  findings: Finding[];
  event?: ProvenEvent;
  effect?: ReceiptParts["effect"];
}

const RECEIPT_LIMIT = 64 * 1024 * 1024;
const LEVELS: readonly LevelName[] = ["integrity", "signed", "witnessed", "anchored"];

/** On a network-ordered workspace, records are computed from messages; only the command line recomputes them. */
function ordered(topic: string): Opinion {
  return opinion(false, `topic ${topic} gives the order; redkey receipt verify --mirror computes the record from it`);
}

/** Return what a receipt proves to a caller with these keys; throw an error for invalid keys. */
export async function verifyReceipt(receipt: string | Uint8Array | object, policy: Policy = {}): Promise<Verdict> {
  const data =
    receipt instanceof Uint8Array ? receipt : utf8(typeof receipt === "string" ? receipt : JSON.stringify(receipt));
  const keys = await notes.parseTrustedKeys(policy.keys ?? [], notes.LOG_KEY);
  const witnesses = (await notes.parseTrustedKeys(policy.witnesses ?? [], notes.WITNESS_KEY)).map((one) => one.key);
  if (new Set(witnesses.map((one) => notes.encodeBase64(one.publicKey))).size !== witnesses.length) {
    throw new Refused("two witnesses have the same key", "witness_repeated");
  }
  const mirror = (policy.mirror ?? []).map((row) => parseRow(row as Json));
  const asked = [true, keys.length, witnesses.length, mirror.length];
  const judged = await judge(data, keys, witnesses, policy.quorum ?? witnesses.length, mirror);
  return { passed: LEVELS.every((name, index) => !asked[index] || judged.levels[name].holds), ...judged };
}

async function judge(
  data: Uint8Array,
  keys: readonly TrustedKey[],
  witnesses: readonly VerifierKey[],
  quorum: number,
  mirror: readonly Row[],
): Promise<Omit<Verdict, "passed">> {
  try {
    const document = decode(data, RECEIPT_LIMIT);
    const receipt = checkReceipt(document);
    const { offline } = receipt;
    if (!offline) {
      const pending = receipt.verification.status === "pending";
      const why = pending
        ? "no checkpoint covers this record yet: fetch the receipt again"
        : "the receipt has no offline part: fetch it with ?format=proof";
      throw new Refused(why, "offline_missing", "/offline");
    }
    const proof = notes.parseProof(offline.proof);
    const shown = await readRecord(offline.wire, offline.internal, receipt.sequence);
    const event = eventAt(shown.wire, receipt.sequence, shown.time);
    const wrong = [
      ...(await inclusion(proof, shown.leaf, receipt.sequence)),
      ...agreement(receipt, offline, proof, event),
      ...(await content(offline.content ?? [], (shown.wire as JsonObject)["payload"]!)),
    ];
    const retired = await retirements(offline.signers ?? []);
    const attestation = notes.parseAttestation(offline.attestation ?? [], proof.checkpoint.origin);
    if (wrong.length) return { ...nothingHolds(wrong), effect: receipt.effect };
    let signed = await signedLevel(proof, keys, retired);
    if (signed.holds) signed = await attested(signed, attestation, await attestedText(document as JsonObject, proof));
    const own = new Set([...keys.map((one) => notes.encodeBase64(one.key.publicKey)), ...retired.keys()]);
    const integrity = opinion(
      true,
      `record ${receipt.sequence} is in the tree of ${proof.checkpoint.size} records of ${proof.checkpoint.origin}`,
    );
    const opinions = [
      integrity,
      signed,
      await witnessedLevel(proof, witnesses, quorum, own),
      offline.order ? ordered(offline.order.topic) : await anchoredLevel(proof, offline.anchor ?? [], mirror),
    ];
    const levels = Object.fromEntries(opinions.map(({ holds, why }, index) => [LEVELS[index], { holds, why }]));
    const findings = opinions.flatMap((one) => one.findings);
    return { levels: levels as Verdict["levels"], findings, event, effect: receipt.effect };
  } catch (refused) {
    if (!(refused instanceof Refused)) throw refused;
    return nothingHolds([{ code: refused.code, pointer: refused.pointer, message: refused.message }]);
  }
}

/** The verdict on a receipt that is invalid or contradicts itself. */
function nothingHolds(findings: Finding[]): Omit<Verdict, "passed"> {
  const why = (index: number) => (index ? "the receipt is not whole" : findings[0]!.message);
  const levels = Object.fromEntries(LEVELS.map((name, index) => [name, { holds: false, why: why(index) }]));
  return { levels: levels as Verdict["levels"], findings };
}

async function inclusion(proof: Proof, leaf: Bytes, sequence: number): Promise<Finding[]> {
  const { index, checkpoint } = proof;
  const found: Finding[] = [];
  if (index !== BigInt(sequence) - 1n) {
    const message = `the proof is of record ${index + 1n}, the receipt of record ${sequence}`;
    found.push({ code: "sequence_mismatch", pointer: "/sequence", message });
  }
  const pointer = "/offline/proof";
  if (index >= checkpoint.size) {
    const message = `record ${index + 1n} is beyond the checkpoint, which covers ${checkpoint.size}`;
    found.push({ code: "record_beyond_checkpoint", pointer, message });
  } else if (!(await isInside(proof, leaf))) {
    found.push({ code: "inclusion_wrong", pointer, message: "the proof does not lead from the record to the root" });
  }
  return found;
}

/** Whether the leaf is in the tree of the checkpoint, at the index (RFC 9162). */
async function isInside({ index, hashes, checkpoint }: Proof, leaf: Bytes): Promise<boolean> {
  // Below the height where the leaf and the right edge of the tree diverge, every level has a sibling; above it, only
  // left siblings count.
  const inner = bitLength(index ^ (checkpoint.size - 1n));
  const left = (index >> BigInt(inner)).toString(2).replaceAll("0", "").length;
  if (hashes.length !== inner + left) return false;
  let found = await notes.digest("SHA-256", new Uint8Array([0]), leaf);
  for (const [height, sibling] of hashes.entries()) {
    const isRight = height >= inner || (index >> BigInt(height)) & 1n;
    found = await notes.digest("SHA-256", new Uint8Array([1]), ...(isRight ? [sibling, found] : [found, sibling]));
  }
  return notes.equal(found, checkpoint.root);
}

function bitLength(value: bigint): number {
  return value === 0n ? 0 : value.toString(2).length;
}

/** Receipts of the first version name the sender as the actor if a runner acted for an agent. */
function isSender(actor: ProvenEvent["actor"], wire: string): boolean {
  const { sender } = JSON.parse(wire) as { sender: string };
  const [kind = "", ...rest] = sender.split(":");
  return actor.type === kind && actor.id === (rest.join(":") || kind);
}

/** Find statements of the receipt that differ from its wire and proof. */
function agreement(
  receipt: ReceiptParts,
  offline: NonNullable<ReceiptParts["offline"]>,
  proof: Proof,
  event: ProvenEvent,
): Finding[] {
  const found: Finding[] = [];
  const differs = (code: string, pointer: string, message: string) => found.push({ code, pointer, message });
  for (const [name, value] of Object.entries(event)) {
    const stated = receipt[name as keyof ProvenEvent];
    if (name === "actor" && isSender(receipt.actor, offline.wire)) continue;
    if (JSON.stringify(sortedPair(stated)) !== JSON.stringify(sortedPair(value))) {
      differs(
        "field_mismatch",
        `/${name}`,
        `the receipt says ${name} ${JSON.stringify(stated)}, the wire ${JSON.stringify(value)}`,
      );
    }
  }
  const { verification, effect, levels } = receipt;
  if (verification.status !== "verified" || verification.provider !== "redkey") {
    differs("field_mismatch", "/verification", "a receipt with a proof says `verified` and `redkey`");
  }
  if (!verification.receiptUrl.endsWith(`/receipts/${event.eventId}`)) {
    differs("field_mismatch", "/verification/receiptUrl", "the address is of another receipt");
  }
  const { origin } = proof.checkpoint;
  const carried = [
    true,
    proof.signatures.some((one) => one.name === origin && !notes.isCosignature(one)),
    proof.signatures.some(notes.isCosignature),
    Boolean(offline.anchor?.length) || Boolean(offline.order),
  ];
  if (LEVELS.some((name, index) => levels[name] !== carried[index])) {
    differs("levels_mismatch", "/levels", "the receipt claims other levels than it carries material for");
  }
  if ((effect.status === "void") !== ((effect.reason ?? null) !== null)) {
    differs("field_mismatch", "/effect", "a void effect has a reason, an applied one has none");
  }
  return found;
}

function sortedPair(value: unknown): unknown {
  return typeof value === "object" && value !== null ? Object.entries(value).sort() : value;
}

/** Find bodies in a receipt that its wire does not name. */
async function content(bodies: readonly string[], payload: Json): Promise<Finding[]> {
  const named = new Map<string, Json>();
  collect(payload, named);
  const found: Finding[] = [];
  for (const [index, body] of bodies.entries()) {
    const pointer = `/offline/content/${index}`;
    try {
      const data = notes.decodeBase64(body);
      const digits = Array.from(await notes.digest("SHA-256", data), (byte) => byte.toString(16).padStart(2, "0")).join(
        "",
      );
      if (!named.has(digits)) throw new Refused("the wire names no content with this hash", "content_not_named");
      const said = named.get(digits) ?? null;
      if (said !== null && said !== data.length)
        throw new Refused(`${data.length} bytes; the wire says ${String(said)}`, "content_length");
    } catch (refused) {
      if (!(refused instanceof Refused)) throw refused;
      found.push({ code: refused.code, pointer, message: refused.message });
    }
  }
  return found;
}

/** Return every content hash and length in a payload. */
function collect(value: Json, named: Map<string, Json>): void {
  if (typeof value !== "object" || value === null) return;
  if (!Array.isArray(value) && typeof value["sha256"] === "string") named.set(value["sha256"], value["bytes"] ?? null);
  for (const item of Object.values(value)) collect(item, named);
}

/** Return the tree size from which each retired signer in the receipt no longer signs, by public key. */
async function retirements(
  signers: ReadonlyArray<{ key: string; retired?: number | null }>,
): Promise<Map<string, bigint>> {
  const retired = new Map<string, bigint>();
  for (const [index, term] of signers.entries()) {
    const key = await notes.parseKey(term.key).catch((refused: Refused) => {
      throw new Refused(refused.message, refused.code, `/offline/signers/${index}`);
    });
    if (term.retired != null) retired.set(notes.encodeBase64(key.publicKey), BigInt(term.retired));
  }
  return retired;
}
