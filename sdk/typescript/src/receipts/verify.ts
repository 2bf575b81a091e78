/**
 * Verifying a receipt with nothing but its bytes and the caller's keys: a second implementation of `redkey receipt
 * verify`, for browsers too.
 *
 *     integrity   the parts agree: the record is in the tree of the checkpoint, and the receipt says what it says
 *     signed      a key that the caller brought signed that checkpoint, and the rest of the receipt
 *     witnessed   the caller's witnesses cosigned it: the log shows them the same history
 *     anchored    it stands on a public topic, by a mirror node's answer that the caller brought
 *
 * No level above holds where integrity does not. A key that came with the receipt proves nothing.
 */
import { canonical, decode, Refused, utf8, type Json, type JsonObject } from "./json.js";
import * as notes from "./notes.js";
import type { Bytes, Proof, Signature, TrustedKey, VerifierKey } from "./notes.js";
import { anchors, checkRows, eventAt, parseRow, placeOf, readRecord, type ProvenEvent, type Row } from "./records.js";
import { checkReceipt, type ReceiptParts } from "./shape.js";

export type LevelName = "integrity" | "signed" | "witnessed" | "anchored";

/** Whether a level of proof holds, and why, in one sentence. */
export interface Level {
  holds: boolean;
  why: string;
}

export interface Finding {
  code: string;
  pointer: string;
  message: string;
}

/** What the caller brought, all of it as text: keys as `redkey receipt keys` prints them, rows of a mirror node. */
export interface Policy {
  keys?: readonly string[];
  witnesses?: readonly string[];
  /** How many witnesses must have cosigned; all of them when not given. */
  quorum?: number;
  mirror?: readonly unknown[];
}

export interface Verdict {
  /** Whether integrity and every level that the caller brought the means for hold. */
  passed: boolean;
  levels: Record<LevelName, Level>;
  findings: Finding[];
  event?: ProvenEvent;
  effect?: ReceiptParts["effect"];
}

interface Opinion extends Level {
  findings: Finding[];
  keys: VerifierKey[];
}

const RECEIPT_LIMIT = 64 * 1024 * 1024;
const LEVELS: readonly LevelName[] = ["integrity", "signed", "witnessed", "anchored"];

/** What a receipt proves to a caller with these keys. Keys that cannot be read are refused with an error. */
export async function verifyReceipt(receipt: string | Uint8Array | object, policy: Policy = {}): Promise<Verdict> {
  const data = receipt instanceof Uint8Array ? receipt : utf8(typeof receipt === "string" ? receipt : JSON.stringify(receipt));
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
      const why = pending ? "no checkpoint covers this record yet: fetch the receipt again" : "the receipt has no offline part: fetch it with ?format=proof";
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
    const integrity = opinion(true, `record ${receipt.sequence} is in the tree of ${proof.checkpoint.size} records of ${proof.checkpoint.origin}`);
    const opinions = [integrity, signed, await witnessedLevel(proof, witnesses, quorum, own), await anchoredLevel(proof, offline.anchor ?? [], mirror)];
    const levels = Object.fromEntries(opinions.map(({ holds, why }, index) => [LEVELS[index], { holds, why }]));
    const findings = opinions.flatMap((one) => one.findings);
    return { levels: levels as Verdict["levels"], findings, event, effect: receipt.effect };
  } catch (refused) {
    if (!(refused instanceof Refused)) throw refused;
    return nothingHolds([{ code: refused.code, pointer: refused.pointer, message: refused.message }]);
  }
}

/** The verdict on what cannot be read, or contradicts itself. */
function nothingHolds(findings: Finding[]): Omit<Verdict, "passed"> {
  const why = (index: number) => (index ? "the receipt is not whole" : findings[0]!.message);
  const levels = Object.fromEntries(LEVELS.map((name, index) => [name, { holds: false, why: why(index) }]));
  return { levels: levels as Verdict["levels"], findings };
}

function opinion(holds: boolean, why: string, findings: Finding[] = [], keys: VerifierKey[] = []): Opinion {
  return { holds, why, findings, keys };
}

function refusal(code: string, why: string, pointer = ""): Opinion {
  return opinion(false, why, [{ code, pointer, message: why }]);
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
  // Up to the height where leaf and right edge part, every level has a sibling; above it only left ones count.
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

/** What the receipt says that its wire and proof do not. */
function agreement(receipt: ReceiptParts, offline: NonNullable<ReceiptParts["offline"]>, proof: Proof, event: ProvenEvent): Finding[] {
  const found: Finding[] = [];
  const differs = (code: string, pointer: string, message: string) => found.push({ code, pointer, message });
  for (const [name, value] of Object.entries(event)) {
    const stated = receipt[name as keyof ProvenEvent];
    if (JSON.stringify(sortedPair(stated)) !== JSON.stringify(sortedPair(value))) {
      differs("field_mismatch", `/${name}`, `the receipt says ${name} ${JSON.stringify(stated)}, the wire ${JSON.stringify(value)}`);
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
    Boolean(offline.anchor?.length),
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

/** The bodies that a receipt carries and its wire does not name. */
async function content(bodies: readonly string[], payload: Json): Promise<Finding[]> {
  const named = new Map<string, Json>();
  collect(payload, named);
  const found: Finding[] = [];
  for (const [index, body] of bodies.entries()) {
    const pointer = `/offline/content/${index}`;
    try {
      const data = notes.decodeBase64(body);
      const digits = Array.from(await notes.digest("SHA-256", data), (byte) => byte.toString(16).padStart(2, "0")).join("");
      if (!named.has(digits)) throw new Refused("the wire names no content with this hash", "content_not_named");
      const said = named.get(digits) ?? null;
      if (said !== null && said !== data.length) throw new Refused(`${data.length} bytes; the wire says ${String(said)}`, "content_length");
    } catch (refused) {
      if (!(refused instanceof Refused)) throw refused;
      found.push({ code: refused.code, pointer, message: refused.message });
    }
  }
  return found;
}

/** Every hash and length of content that a payload names. */
function collect(value: Json, named: Map<string, Json>): void {
  if (typeof value !== "object" || value === null) return;
  if (!Array.isArray(value) && typeof value["sha256"] === "string") named.set(value["sha256"], value["bytes"] ?? null);
  for (const item of Object.values(value)) collect(item, named);
}

/** From which size on each signer that the receipt tells of signs no more, by public key. */
async function retirements(signers: ReadonlyArray<{ key: string; retired?: number | null }>): Promise<Map<string, bigint>> {
  const retired = new Map<string, bigint>();
  for (const [index, term] of signers.entries()) {
    const key = await notes.parseKey(term.key).catch((refused: Refused) => {
      throw new Refused(refused.message, refused.code, `/offline/signers/${index}`);
    });
    if (term.retired != null) retired.set(notes.encodeBase64(key.publicKey), BigInt(term.retired));
  }
  return retired;
}

/** Is the checkpoint signed by a key that the caller brought? What the receipt tells of retired signers only refuses. */
async function signedLevel(proof: Proof, keys: readonly TrustedKey[], retired: ReadonlyMap<string, bigint>): Promise<Opinion> {
  const { origin, size } = proof.checkpoint;
  const signers = proof.signatures.filter((one) => !notes.isCosignature(one)).map(nameOf).join(", ") || "nobody";
  if (!keys.length) return opinion(false, `no key was given to check with; ${signers} signed, and nobody vouched for that key`);
  const good: VerifierKey[] = [];
  const findings: Finding[] = [];
  let fits = false;
  for (const trusted of keys) {
    const key = await notes.keyFor(trusted, origin);
    if (!key) continue;
    fits = true;
    const signatures = by(key, proof.signatures);
    if (!signatures.length) continue;
    for (const one of signatures) {
      if (!(await notes.verifies(key, one, proof.text))) return refusal("signature_invalid", `the signature of ${nameOf(one)} is wrong`);
    }
    const ends = [trusted.retired, retired.get(notes.encodeBase64(key.publicKey))].filter((end) => end !== undefined);
    if (ends.some((end) => size >= end)) {
      findings.push({ code: "signer_retired", pointer: "", message: `${nameOf(key)} was retired at size ${ends.sort()[0]}, and signed size ${size}` });
    } else {
      good.push(key);
    }
  }
  // A retired key beside one that holds takes nothing away.
  if (good.length) return opinion(true, `signed by ${good.map(nameOf).join(", ")}`, [], good);
  if (findings.length) return opinion(false, findings[0]!.message, findings);
  if (fits) return refusal("key_did_not_sign", `signed by ${signers}, not by a key that was given`);
  return refusal("key_other_log", `the key is for ${keys.map((one) => one.key.name).join(", ")}, the checkpoint is of ${origin}`);
}

function by(key: VerifierKey, signatures: readonly Signature[]): Signature[] {
  return signatures.filter((one) => one.id === key.id && one.name === key.name);
}

function nameOf(one: { name: string; id: string }): string {
  return `${one.name}+${one.id}`;
}

/** What the log signs for a receipt: a digest of all of it but these signatures, under its origin and size. */
async function attestedText(document: JsonObject, { checkpoint }: Proof): Promise<string> {
  const { attestation: _, ...offline } = document["offline"] as JsonObject;
  const hash = await notes.digest("SHA-256", canonical({ ...document, offline }));
  return `redkey/receipt@v1\n${checkpoint.origin}\n${checkpoint.size}\n${notes.encodeBase64(hash)}\n`;
}

/** The signed level goes on holding when the same key signed what the receipt says beside its record. */
async function attested(signed: Opinion, attestation: readonly Signature[], text: string): Promise<Opinion> {
  const tried = signed.keys.flatMap((key) => by(key, attestation).map((one) => notes.verifies(key, one, text)));
  const isRight = (await Promise.all(tried)).every(Boolean);
  if (tried.length && isRight) return signed;
  const why = `the checkpoint is ${signed.why}, but the signature of the receipt itself is ${tried.length ? "wrong: the receipt was changed" : "missing"}`;
  return refusal(tried.length ? "attestation_invalid" : "attestation_missing", why, "/offline/attestation");
}

/** Did enough of the caller's witnesses cosign? A log is no witness of itself. */
async function witnessedLevel(proof: Proof, witnesses: readonly VerifierKey[], quorum: number, own: ReadonlySet<string>): Promise<Opinion> {
  if (!witnesses.length) {
    const lines = [...new Set(proof.signatures.filter(notes.isCosignature).map(nameOf))].join(", ");
    return opinion(false, `no witness key was given to check with; ${lines ? `${lines} cosigned, and nobody vouched for them` : "nobody cosigned"}`);
  }
  const findings: Finding[] = [];
  const good: VerifierKey[] = [];
  for (const witness of witnesses) {
    const lines = by(witness, proof.signatures);
    const times = await Promise.all(lines.map((one) => notes.cosignedAt(witness, one, proof.text)));
    const [code, message] = own.has(notes.encodeBase64(witness.publicKey))
      ? ["witness_is_signer", `${witness.name} has the log's own key: it witnesses nothing`]
      : !lines.length
        ? ["witness_missing", `${witness.name} did not cosign this checkpoint`]
        : times.includes(undefined)
          ? ["cosignature_invalid", `the cosignature of ${witness.name} is wrong`]
          : ["", ""];
    if (code) findings.push({ code, pointer: "", message: message! });
    else good.push(witness);
  }
  if (good.length >= quorum && !findings.some((one) => one.code === "cosignature_invalid")) {
    return opinion(true, `cosigned by ${good.map((one) => one.name).join(", ")}`, [], good);
  }
  const message = `${good.length} of ${witnesses.length} witnesses cosigned, ${quorum} are needed`;
  return opinion(false, message, [...findings, { code: "witness_quorum", pointer: "", message }]);
}

/**
 * Does the checkpoint stand on a topic, by rows that came with the receipt and rows that the caller brought?
 *
 * Rows carry no signature: what came with the receipt counts only as far as it leads, by running hashes, to a row that
 * the caller fetched.
 */
async function anchoredLevel({ checkpoint }: Proof, attached: readonly Json[], brought: readonly Row[]): Promise<Opinion> {
  const pointer = "/offline/anchor";
  try {
    const rows = [...brought, ...attached.map(parseRow)];
    if (!rows.length) return opinion(false, "the receipt carries no anchor, and no mirror answer was given");
    const verified = await checkRows(rows);
    const found = [...verified.values()].filter((row) => anchors(row, checkpoint));
    const trusted = new Set(brought.map((row) => placeOf(row)));
    for (const row of found) {
      let step = 0;
      while (!trusted.has(placeOf(row, step)) && verified.has(placeOf(row, step + 1))) step++;
      if (trusted.has(placeOf(row, step))) return opinion(true, `on topic ${row.topic} as message ${row.sequence}`);
    }
    if (!found[0]) return refusal("anchor_not_found", "no row that could be checked anchors this checkpoint", pointer);
    const said = `the rows say topic ${found[0].topic}, message ${found[0].sequence}`;
    return opinion(false, `${said}, but no mirror answer was given that bears them out`);
  } catch (refused) {
    if (!(refused instanceof Refused)) throw refused;
    return refusal(refused.code, refused.message, pointer);
  }
}
