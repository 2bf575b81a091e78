/** Signed notes, verifier keys, checkpoints and inclusion proofs in C2SP formats. Parsing is strict and bounded. */
import { hex } from "../calls.js";
import { RedKeyError } from "../errors.js";
import { Refused, utf8 } from "./json.js";

export type Bytes = Uint8Array<ArrayBuffer>;

/** A log's key signs texts; a witness's key signs them with a time. */
export const LOG_KEY = 1;
export const WITNESS_KEY = 4;
const SIGNATURE_BYTES = 64;
const COSIGNATURE_BYTES = 8 + SIGNATURE_BYTES;
const NOTE_LIMIT = 128 * 1024;
const EXTRA_LIMIT = 64 * 1024;
const SIGNATURES_LIMIT = 64;
const HEADER = "c2sp.org/tlog-proof@v1";

/** A public key and the name it signs under; `id` identifies both, in hexadecimal digits. */
export interface VerifierKey {
  name: string;
  algorithm: number;
  publicKey: Bytes;
  id: string;
}

/** A key of the caller, and the tree size from which on it is retired. */
export interface TrustedKey {
  key: VerifierKey;
  retired: bigint | undefined;
}

/** One signature line: the claimed signer, and the signature. */
export interface Signature {
  name: string;
  id: string;
  data: Bytes;
}

/** The log's origin, the number of records, and their root hash. */
export interface Checkpoint {
  origin: string;
  size: bigint;
  root: Bytes;
}

export interface Proof {
  index: bigint;
  hashes: Bytes[];
  checkpoint: Checkpoint;
  text: string;
  signatures: Signature[];
}

export async function digest(algorithm: "SHA-256" | "SHA-384", ...parts: Uint8Array[]): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.digest(algorithm, joined(...parts)));
}

export function joined(...parts: Uint8Array[]): Bytes {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

export function equal(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, index) => byte === other[index]);
}

export function encodeBase64(data: Uint8Array): string {
  let text = "";
  // In parts, because the number of arguments of a function is limited.
  for (let at = 0; at < data.length; at += 8192) text += String.fromCharCode(...data.subarray(at, at + 8192));
  return btoa(text);
}

/** Decode standard base64 in its canonical form. */
export function decodeBase64(text: string): Bytes {
  try {
    const data = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
    if (encodeBase64(data) === text) return data;
  } catch {
    // Said below.
  }
  throw new Refused("not base64 as it is written canonically", "base64_malformed");
}

/** Parse a tree size or index: decimal, no leading zero, no sign, below 2^63. */
export function parseSize(text: unknown): bigint {
  if (typeof text === "string" && /^(0|[1-9]\d{0,18})$/.test(text) && BigInt(text) < 2n ** 63n) return BigInt(text);
  throw new Refused(`${JSON.stringify(text)} is not a tree size`, "checkpoint_malformed");
}

function isKeyName(name: string): boolean {
  return /^(?:[^\s+\x00-\x1f\x85]|\ufeff)+$/u.test(name) && utf8(name).length <= 255;
}

/** Return a key with the id that follows from it and its name. */
export async function keyNamed(name: string, algorithm: number, publicKey: Bytes): Promise<VerifierKey> {
  const named = await digest("SHA-256", utf8(`${name}\n`), new Uint8Array([algorithm]), publicKey);
  return { name, algorithm, publicKey, id: hex(named.subarray(0, 4)) };
}

/** Parse a verifier key, `name+key id+base64`. */
export async function parseKey(text: string): Promise<VerifierKey> {
  const [, name = "", id = "", encoded = ""] = /^([^+]*)\+([^+]*)\+(.*)$/s.exec(text.trim()) ?? [];
  let data: Bytes;
  try {
    data = decodeBase64(encoded);
  } catch {
    data = new Uint8Array();
  }
  const [algorithm = 0] = data;
  if (!isKeyName(name) || !data.length) throw new Refused("a verifier key is `name+key id+base64`", "key_malformed");
  if (data.length !== 33 || (algorithm !== LOG_KEY && algorithm !== WITNESS_KEY)) {
    throw new Refused(
      `the key of ${name} is not an Ed25519 key of a log (0x01) or a witness (0x04)`,
      "key_type_unknown",
    );
  }
  const key = await keyNamed(name, algorithm, data.slice(1));
  if (key.id !== id)
    throw new Refused(`the key of ${name} has the id ${key.id}, not ${id.slice(0, 8)}`, "key_id_wrong");
  return key;
}

/** Parse the keys of one kind in key files: lines `verifier-key` or `verifier-key retired SIZE`; # starts a comment. */
export async function parseTrustedKeys(lines: readonly string[], algorithm: number): Promise<TrustedKey[]> {
  const found: TrustedKey[] = [];
  for (const line of lines.flatMap((text) => text.split(/\r\n|\r|\n/))) {
    const [text, word, size, ...more] = line.replace(/#.*/s, "").split(/\s+/).filter(Boolean);
    if (text === undefined) continue;
    if (more.length || (word !== undefined && (word !== "retired" || size === undefined))) {
      throw new Refused("a line of a key file is `verifier-key` or `verifier-key retired SIZE`", "key_refused");
    }
    const key = await parseKey(text);
    if (key.algorithm !== algorithm) throw new Refused(`${key.name} is a key of the other kind`, "key_type_wrong");
    // Sizes are counted per origin, so one size cannot end a key for all origins of a log.
    if (word && /^redkey\//.test(key.name) && !/^redkey\/[^/]+\/[^/]+\/e[1-9]\d{0,5}$/.test(key.name)) {
      throw new Refused(
        `a retirement is of one origin, such as ${key.name}/<workspace>/e1, not of a whole log`,
        "key_refused",
      );
    }
    found.push({ key, retired: size === undefined ? undefined : parseSize(size) });
  }
  return found;
}

/** Parse the text of a proof; Refused if it is not exactly one. */
export function parseProof(whole: string): Proof {
  if (utf8(whole).length > NOTE_LIMIT + EXTRA_LIMIT * 2) throw new Refused("the proof is too large", "proof_too_large");
  const parting = whole.indexOf("\n\n");
  const head = parting < 0 ? whole : whole.slice(0, parting);
  const note = parting < 0 ? "" : whole.slice(parting + 2);
  const lines = head.split("\n");
  if (!/^[\x00-\x7f]*$/.test(head)) throw malformed("its head is not ASCII");
  if (lines.shift() !== HEADER) throw malformed(`it does not begin with ${HEADER}`);
  if (lines[0]?.startsWith("extra ")) {
    const extra = decodeBase64(lines.shift()!.slice("extra ".length));
    if (!extra.length || extra.length > EXTRA_LIMIT) throw malformed("its extra data is empty or too long");
  }
  if (!lines[0]?.startsWith("index ")) throw malformed("it has no index line");
  const index = parseSize(lines.shift()!.slice("index ".length));
  const { text, signatures } = parseNote(note);
  const checkpoint = parseCheckpoint(text);
  if (lines.length > 63) throw malformed("it has too many hashes");
  const hashes = lines.map(decodeBase64);
  if (hashes.some((hash) => hash.length !== 32)) throw malformed("a hash has not 32 bytes");
  return { index, hashes, checkpoint, text, signatures };
}

function malformed(why: string): Refused {
  return new Refused(`not a tlog-proof: ${why}`, "proof_malformed");
}

function parseNote(note: string): { text: string; signatures: Signature[] } {
  if (utf8(note).length > NOTE_LIMIT) throw new Refused("the note is too large", "note_too_large");
  if (/[\x00-\x09\x0b-\x1f]/.test(note)) throw new Refused("the note holds a control character", "note_malformed");
  // The text may contain empty lines: the last one separates it from the signatures.
  const parting = note.lastIndexOf("\n\n");
  const lines = note.slice(parting + 2);
  if (parting < 0 || !lines.endsWith("\n")) throw new Refused("the note has no signature lines", "note_malformed");
  const signatures = lines.slice(0, -1).split("\n");
  if (signatures.length > SIGNATURES_LIMIT) throw new Refused("the note has too many signatures", "note_too_large");
  return { text: note.slice(0, parting + 1), signatures: signatures.map(parseSignature) };
}

function parseSignature(line: string): Signature {
  const [, name = "", encoded = ""] = /^— ([^ ]*) (.*)$/s.exec(line) ?? [];
  if (!isKeyName(name)) throw new Refused("a signature line is not `— name base64`", "note_malformed");
  const data = decodeBase64(encoded);
  if (data.length <= 4) throw new Refused("a signature line is too short", "note_malformed");
  return { name, id: hex(data.subarray(0, 4)), data: data.slice(4) };
}

function parseCheckpoint(text: string): Checkpoint {
  const lines = text.split("\n");
  const end = lines.pop();
  if (lines.length < 3 || lines.length > 3 + 16 || lines.includes("") || end !== "") {
    throw new Refused("a checkpoint is 3 to 19 lines, none empty", "checkpoint_malformed");
  }
  const root = decodeBase64(lines[2]!);
  if (root.length !== 32) throw new Refused("the root of a checkpoint has 32 bytes", "checkpoint_malformed");
  return { origin: lines[0]!, size: parseSize(lines[1]), root };
}

/** Return the signatures of a receipt's own text, one for each signer, not yet checked. */
export function parseAttestation(lines: readonly string[], origin: string): Signature[] {
  const found = lines
    .map(decodeBase64)
    .map((data) => ({ name: origin, id: hex(data.subarray(0, 4)), data: data.slice(4) }));
  if (found.length > SIGNATURES_LIMIT || new Set(found.map((one) => one.id)).size !== found.length) {
    throw new Refused("a receipt is attested once by each signer", "receipt_malformed", "/offline/attestation");
  }
  return found;
}

/** Return the key for an origin's checkpoints: a log's key signs for every origin under its name. */
export async function keyFor({ key }: TrustedKey, origin: string): Promise<VerifierKey | undefined> {
  if (!isKeyName(origin) || (origin !== key.name && !origin.startsWith(`${key.name}/`))) return undefined;
  return keyNamed(origin, key.algorithm, key.publicKey);
}

export function isCosignature(signature: Signature): boolean {
  return signature.data.length === COSIGNATURE_BYTES;
}

/** Whether a plain signature line of this key is valid for this text. */
export function verifies(key: VerifierKey, signature: Signature, text: string): Promise<boolean> {
  return isSigned(key, signature.data, utf8(text));
}

/** Return when a witness cosigned this text, in seconds since 1970; undefined if it did not. */
export async function cosignedAt(key: VerifierKey, signature: Signature, text: string): Promise<bigint | undefined> {
  if (!isCosignature(signature)) return undefined;
  const seconds = new DataView(signature.data.buffer).getBigUint64(0);
  const message = utf8(`cosignature/v1\ntime ${seconds}\n${text}`);
  return seconds < 2n ** 63n && (await isSigned(key, signature.data.slice(8), message)) ? seconds : undefined;
}

async function isSigned(key: VerifierKey, signature: Bytes, message: Bytes): Promise<boolean> {
  if (signature.length !== SIGNATURE_BYTES) return false;
  try {
    const imported = await crypto.subtle.importKey("raw", key.publicKey, "Ed25519", false, ["verify"]);
    return await crypto.subtle.verify("Ed25519", imported, signature, message);
  } catch (cause) {
    // A platform without Ed25519 must not look like a wrong signature.
    if ((cause as Error).name === "NotSupportedError") {
      throw new RedKeyError("this platform has no Ed25519 in WebCrypto", "ed25519_unavailable", { cause });
    }
    return false;
  }
}
