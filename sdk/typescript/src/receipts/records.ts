/** Records: the running hash of Hedera topics, the event of a wire, and rows of mirror nodes. */
import { canonical, decode, Refused, utf8, type Json, type JsonObject } from "./json.js";
import { decodeBase64, digest, encodeBase64, equal, joined, parseSize, type Bytes, type Checkpoint } from "./notes.js";

/** An event, computed from only a wire and its place in the ledger. */
export interface ProvenEvent {
  eventId: string;
  type: string;
  sequence: number;
  timestamp: string;
  actor: { type: string; id: string };
  subject: { type: string; id: string };
}

/** The ledger's data about a record, besides its wire. */
export interface Internal {
  topicId: string;
  payer: string;
  consensusTimestamp: string;
  previousRunningHash: string;
  runningHash: string;
}

const BILLION = 1_000_000_000n;
const HASH_BYTES = 48;
// Hedera's running hash includes the bytes that Java's ObjectOutputStream writes around the fields.
const OPENING = bytes("aced0005757200025b42acf317f8060854e0020000787000000030");
const CLOSING = bytes("7571007e000000000030");
// The payload field that repeats the stream's id, by kind of stream.
const SUBJECT_FIELDS = ["task", "agent", "workflow", "queue", "role", "workspace"];

function bytes(digits: string): Bytes {
  return Uint8Array.from(digits.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

/** The bytes whose SHA-384 is the running hash of a message; they are also the leaf of the Merkle tree. */
export async function preimage(
  previous: Bytes,
  payer: string,
  topic: string,
  time: bigint,
  sequence: bigint,
  message: Bytes,
): Promise<Bytes> {
  const view = new DataView(new ArrayBuffer(78));
  view.setUint16(0, 0x774c);
  [3n, ...entity(payer), ...entity(topic), time / BILLION].forEach((value, index) => {
    if (value >= 2n ** 63n) throw new Error("a number is too large");
    view.setBigInt64(2 + index * 8, value);
  });
  view.setInt32(66, Number(time % BILLION));
  view.setBigInt64(70, sequence);
  return joined(OPENING, previous, new Uint8Array(view.buffer), CLOSING, await digest("SHA-384", message));
}

/** Parse `shard.realm.num` into three integers. */
function entity(text: string): bigint[] {
  const parts = text.split(".");
  if (parts.length !== 3 || !parts.every((part) => /^\d+$/.test(part) && BigInt(part) < 2n ** 63n)) {
    throw new Error(`"${text}" is not shard.realm.num`);
  }
  return parts.map(BigInt);
}

/** Parse `seconds.nnnnnnnnn` into nanoseconds. */
function parseTime(text: string): bigint {
  const [, seconds, nanos] = /^(\d+)\.(\d{9})$/.exec(text) ?? [];
  if (seconds === undefined || nanos === undefined) throw new Error(`"${text}" is not seconds.nnnnnnnnn`);
  return BigInt(seconds) * BILLION + BigInt(nanos);
}

/** Read the record of a receipt: its wire, its leaf and its time; Refused if it contradicts itself. */
export async function readRecord(
  wire: string,
  internal: Internal,
  sequence: number,
): Promise<{ wire: Json; leaf: Bytes; time: bigint }> {
  const data = utf8(wire);
  if (!data.length || data.length > 1024)
    throw new Refused(`the wire has ${data.length} bytes; 1 to 1024 are allowed`, "wire_length");
  const value = decode(data);
  if (!equal(canonical(value), data))
    throw new Refused("the wire is not in its canonical bytes", "wire_not_canonical", "/offline/wire");
  let time: bigint;
  let leaf: Bytes;
  try {
    time = parseTime(internal.consensusTimestamp);
    const previous = decodeBase64(internal.previousRunningHash);
    if (previous.length !== HASH_BYTES) throw new Error("a running hash has 48 bytes");
    leaf = await preimage(previous, internal.payer, internal.topicId, time, BigInt(sequence), data);
  } catch (cause) {
    throw new Refused(
      `the record cannot be hashed: ${(cause as Error).message}`,
      "record_malformed",
      "/offline/internal",
    );
  }
  if (!equal(await digest("SHA-384", leaf), decodeBase64(internal.runningHash))) {
    throw new Refused(
      "the running hash is not the hash of the record that is shown",
      "running_hash_wrong",
      "/offline/internal/runningHash",
    );
  }
  return { wire: value, leaf, time };
}

/** Return the event of a wire at its place in the order; Refused if it is not an Agent Wire 1.1 message. */
export function eventAt(wire: Json, sequence: number, time: bigint): ProvenEvent {
  try {
    const said = wire as {
      wire_id: string;
      type: string;
      sender: string;
      payload: JsonObject;
      stream: { stream_id: string };
    };
    if (typeof said.payload !== "object" || said.payload === null || Array.isArray(said.payload))
      throw new Error("no payload");
    const stream = () => streamOf(said.stream.stream_id);
    const stated = (field: string): Json | undefined => {
      const value = said.payload[field] ?? undefined;
      if (value !== undefined) return value;
      const { kind, subject } = stream();
      return field === `${kind}_id` && SUBJECT_FIELDS.includes(kind) ? subject : undefined;
    };
    const [first = ""] = said.type.split(".");
    const kind = first === "inbox" ? "message" : first;
    const named = stated(`${kind}_id`);
    return {
      eventId: `evt_${said.wire_id.replace(/^wire_/, "")}`,
      type: said.type,
      sequence,
      timestamp: isoTime(time),
      actor: actorOf(said, stated),
      subject: named === undefined ? { type: stream().kind, id: stream().subject } : { type: kind, id: text(named) },
    };
  } catch {
    throw new Refused("the wire is not an Agent Wire 1.1 message", "wire_unreadable");
  }
}

/** Split a stream id into its kind and its subject; a task's stream also names an attempt. */
function streamOf(id: string): { kind: string; subject: string } {
  const [kind = "", subject, ...rest] = id.split(":");
  if (subject === undefined || (rest.length && !/^\d+$/.test(rest[1] ?? ""))) throw new Error("no stream");
  return { kind, subject };
}

function actorOf(
  wire: { type: string; sender: string; payload: JsonObject },
  stated: (field: string) => Json | undefined,
): ProvenEvent["actor"] {
  const [kind = "", ...rest] = wire.sender.split(":");
  const name = rest.join(":");
  // The system records the claim, but the claiming agent is the actor.
  if (wire.type.startsWith("task.claim")) return { type: "agent", id: text(stated("agent_id") || name || kind) };
  if (kind !== "agent" && kind !== "runner") return { type: kind, id: name || kind };
  // An agent's stream names the agent, unless another sender writes to it, as to an inbox.
  const named = wire.type.startsWith("agent.") ? stated("agent_id") : wire.payload["agent_id"];
  // A runner acts on behalf of the agent in the payload.
  return { type: named ? "agent" : kind, id: text(named || name) };
}

/** An id as text. */
function text(value: Json): string {
  if (typeof value !== "string" && typeof value !== "number") throw new Error("an id is not text");
  return String(value);
}

function isoTime(time: bigint): string {
  // Later years do not fit into four digits.
  if (time >= 253_402_300_800n * BILLION) throw new Error("a time beyond the year 9999");
  return `${new Date(Number(time / BILLION) * 1000).toISOString().slice(0, 19)}.${String(time % BILLION).padStart(9, "0")}Z`;
}

/** One message of a topic, as a mirror node shows it. */
export interface Row {
  topic: string;
  sequence: number;
  time: bigint;
  payer: string | null;
  message: Bytes;
  runningHash: Bytes;
  version: number | null;
  chunked: boolean;
}

/** Parse a row from JSON; Refused if it is not one. */
export function parseRow(value: Json): Row {
  try {
    const said = value as JsonObject;
    const { sequence_number: sequence, running_hash_version: version = null, payer_account_id: payer = null } = said;
    if (typeof sequence !== "number" || !Number.isInteger(sequence) || sequence <= 0)
      throw new Error("no sequence_number");
    if (version !== null && (typeof version !== "number" || !Number.isInteger(version))) throw new Error("no version");
    for (const name of [said["topic_id"], ...(payer === null ? [] : [payer])]) entity(name as string);
    const row = {
      topic: said["topic_id"] as string,
      sequence,
      time: parseTime(said["consensus_timestamp"] as string),
      payer: payer as string | null,
      message: decodeBase64(said["message"] as string),
      runningHash: decodeBase64(said["running_hash"] as string),
      version,
      chunked: (said["chunk_info"] ?? null) !== null,
    };
    if (row.runningHash.length !== HASH_BYTES) throw new Error("a running hash has 48 bytes");
    return row;
  } catch (cause) {
    throw new Refused(`not a row of a mirror node: ${(cause as Error).message}`, "row_malformed");
  }
}

/** Return the rows whose running hash follows from the previous row, by place; Refused if rows contradict each other. */
export async function checkRows(rows: readonly Row[]): Promise<Map<string, Row>> {
  const seen = new Map<string, Row>();
  for (const row of rows) {
    const before = seen.get(placeOf(row));
    if (before && spelled(before) !== spelled(row)) throw bad(row);
    seen.set(placeOf(row), before ?? row);
  }
  const verified = new Map<string, Row>();
  for (const [place, row] of seen) {
    const previous = seen.get(placeOf(row, -1));
    if (row.version !== 3 || row.payer === null || (!previous && row.sequence !== 1)) continue;
    const hash = row.sequence === 1 ? new Uint8Array(HASH_BYTES) : previous!.runningHash;
    const leaf = await preimage(hash, row.payer, row.topic, row.time, BigInt(row.sequence), row.message).catch(() => {
      throw bad(row);
    });
    const isLate = row.sequence === 1 || row.time > previous!.time;
    if (!isLate || !equal(await digest("SHA-384", leaf), row.runningHash)) throw bad(row);
    verified.set(place, row);
  }
  return verified;
}

export function placeOf(row: Row, step = 0): string {
  return `${row.topic} ${row.sequence + step}`;
}

function spelled(row: Row): string {
  const { time, message, runningHash, ...rest } = row;
  return JSON.stringify([String(time), encodeBase64(message), encodeBase64(runningHash), rest]);
}

function bad(row: Row): Refused {
  return new Refused(
    `row ${row.sequence} of topic ${row.topic} does not follow from the rows around it`,
    "anchor_row_bad",
  );
}

/** Whether a row holds the message (HCS-27) that anchors a checkpoint. */
export function anchors(row: Row, { origin, size, root }: Checkpoint): boolean {
  try {
    const { p, op, metadata } = decode(row.message, 4096) as {
      p: string;
      op: string;
      metadata: Record<string, Record<string, string>>;
    };
    const { log, stream, root: said } = metadata;
    const encoded = encodeBase64(root).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
    return (
      `${p} ${op} ${log?.["alg"]} ${log?.["merkle"]}` === "hcs-27 register sha-256 rfc9162" &&
      `${stream?.["registry"]}/${stream?.["log_id"]}` === origin &&
      parseSize(said?.["treeSize"]) === size &&
      said?.["rootHashB64u"] === encoded
    );
  } catch {
    return false;
  }
}
