/** Judge a checkpoint by the verifier's keys and rows: who signed it, who witnessed it, and where it is anchored. */
import { canonical, Refused, type Json, type JsonObject } from "./json.js";
import * as notes from "./notes.js";
import type { Proof, Signature, TrustedKey, VerifierKey } from "./notes.js";
import { anchors, checkRows, parseRow, placeOf, type Row } from "./records.js";

/** Whether a level of proof holds, and the reason in one sentence. */
export interface Level {
  holds: boolean;
  why: string;
}

export interface Finding {
  code: string;
  pointer: string;
  message: string;
}

/** A level, its findings, and the keys by which it holds. */
export interface Opinion extends Level {
  findings: Finding[];
  keys: VerifierKey[];
}

export function opinion(holds: boolean, why: string, findings: Finding[] = [], keys: VerifierKey[] = []): Opinion {
  return { holds, why, findings, keys };
}

function refusal(code: string, why: string, pointer = ""): Opinion {
  return opinion(false, why, [{ code, pointer, message: why }]);
}

/** Check for a signature by a key of the caller. The receipt's list of retired signers can only refuse a key. */
export async function signedLevel(
  proof: Proof,
  keys: readonly TrustedKey[],
  retired: ReadonlyMap<string, bigint>,
): Promise<Opinion> {
  const { origin, size } = proof.checkpoint;
  const signers =
    proof.signatures
      .filter((one) => !notes.isCosignature(one))
      .map(nameOf)
      .join(", ") || "nobody";
  if (!keys.length)
    return opinion(false, `no key was given to check with; ${signers} signed, and nobody vouched for that key`);
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
      if (!(await notes.verifies(key, one, proof.text)))
        return refusal("signature_invalid", `the signature of ${nameOf(one)} is wrong`);
    }
    const ends = [trusted.retired, retired.get(notes.encodeBase64(key.publicKey))].filter((end) => end !== undefined);
    if (ends.some((end) => size >= end)) {
      findings.push({
        code: "signer_retired",
        pointer: "",
        message: `${nameOf(key)} was retired at size ${ends.sort()[0]}, and signed size ${size}`,
      });
    } else {
      good.push(key);
    }
  }
  // A retired key does not weaken a signature by a valid key.
  if (good.length) return opinion(true, `signed by ${good.map(nameOf).join(", ")}`, [], good);
  if (findings.length) return opinion(false, findings[0]!.message, findings);
  if (fits) return refusal("key_did_not_sign", `signed by ${signers}, not by a key that was given`);
  return refusal(
    "key_other_log",
    `the key is for ${keys.map((one) => one.key.name).join(", ")}, the checkpoint is of ${origin}`,
  );
}

function by(key: VerifierKey, signatures: readonly Signature[]): Signature[] {
  return signatures.filter((one) => one.id === key.id && one.name === key.name);
}

function nameOf(one: { name: string; id: string }): string {
  return `${one.name}+${one.id}`;
}

/** The text that the log signs for a receipt: a digest of everything except these signatures, its origin and its size. */
export async function attestedText(document: JsonObject, { checkpoint }: Proof): Promise<string> {
  const { attestation: _, ...offline } = document["offline"] as JsonObject;
  const hash = await notes.digest("SHA-256", canonical({ ...document, offline }));
  return `redkey/receipt@v1\n${checkpoint.origin}\n${checkpoint.size}\n${notes.encodeBase64(hash)}\n`;
}

/** Keep the signed level if the same key also signed the receipt's own statements. */
export async function attested(signed: Opinion, attestation: readonly Signature[], text: string): Promise<Opinion> {
  const tried = signed.keys.flatMap((key) => by(key, attestation).map((one) => notes.verifies(key, one, text)));
  const isRight = (await Promise.all(tried)).every(Boolean);
  if (tried.length && isRight) return signed;
  const why = `the checkpoint is ${signed.why}, but the signature of the receipt itself is ${tried.length ? "wrong: the receipt was changed" : "missing"}`;
  return refusal(tried.length ? "attestation_invalid" : "attestation_missing", why, "/offline/attestation");
}

/** Check that enough of the caller's witnesses cosigned. A log cannot be its own witness. */
export async function witnessedLevel(
  proof: Proof,
  witnesses: readonly VerifierKey[],
  quorum: number,
  own: ReadonlySet<string>,
): Promise<Opinion> {
  if (!witnesses.length) {
    const lines = [...new Set(proof.signatures.filter(notes.isCosignature).map(nameOf))].join(", ");
    return opinion(
      false,
      `no witness key was given to check with; ${lines ? `${lines} cosigned, and nobody vouched for them` : "nobody cosigned"}`,
    );
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
 * Check that the checkpoint is on a topic, by the rows in the receipt and the rows that the caller provided.
 *
 * Rows are not signed: the receipt's rows only count if their running hashes lead to a row that the caller fetched.
 */
export async function anchoredLevel(
  { checkpoint }: Proof,
  attached: readonly Json[],
  brought: readonly Row[],
): Promise<Opinion> {
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
