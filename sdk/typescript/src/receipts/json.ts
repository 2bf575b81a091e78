/** Parse bytes as JSON, refusing anything that two parsers could read differently; write canonical bytes (RFC 8785). */
import { RedKeyError } from "../errors.js";

/** An input that is invalid or contradicts itself: a code, a message, and the place. */
export class Refused extends RedKeyError {
  override name = "Refused";

  constructor(
    message: string,
    code: string,
    readonly pointer = "",
  ) {
    super(message, code);
  }
}

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type JsonObject = { [name: string]: Json };

const DEPTH_LIMIT = 64;
const WORDS: Record<string, Json> = { true: true, false: false, null: null };

export function utf8(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}

/** Return the JSON value of some bytes; Refused with a code if they are not exactly one value. */
export function decode(data: Uint8Array, sizeLimit = 1024 * 1024): Json {
  if (data.length > sizeLimit)
    throw new Refused(`${data.length} bytes of JSON; the limit is ${sizeLimit}`, "json_too_large");
  if (data[0] === 0xef && data[1] === 0xbb && data[2] === 0xbf)
    throw new Refused("the text begins with a byte order mark", "json_bom");
  if (data.includes(0)) throw new Refused("the text holds the character NUL", "json_nul");
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(data);
  } catch {
    throw new Refused("the bytes are not UTF-8", "json_utf8");
  }
  return new Reader(text).whole();
}

/** A parser that remembers the first unsafe value and refuses it once the syntax is known to be right. */
class Reader {
  #at = 0;
  #unsafe: Refused | undefined;

  constructor(readonly text: string) {}

  whole(): Json {
    const value = this.#value(0);
    if (this.#peek() !== "") this.#syntax();
    if (this.#unsafe) throw this.#unsafe;
    return value;
  }

  #value(depth: number): Json {
    if (depth > DEPTH_LIMIT) throw new Refused(`the JSON is nested deeper than ${DEPTH_LIMIT} levels`, "json_too_deep");
    const sign = this.#peek();
    if (sign === "{") return this.#object(depth);
    if (sign === "[") return this.#array(depth);
    if (sign === '"') return this.#string();
    const [word = ""] = /^[\w.+-]+/.exec(this.text.slice(this.#at, this.#at + 400)) ?? [];
    this.#at += word.length;
    if (Object.hasOwn(WORDS, word)) return WORDS[word] as Json;
    return this.#number(word);
  }

  #number(word: string): number {
    const isConstant = /^(NaN|-?Infinity)$/.test(word);
    if (!isConstant && !/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(word)) this.#syntax();
    const value = Number(word);
    if (isConstant || !Number.isFinite(value) || (Number.isInteger(value) && !Number.isSafeInteger(value))) {
      this.#unsafe ??= new Refused(`the number ${word.slice(0, 40)} is not safe in JSON`, "json_number");
    }
    // 1.0 and 1 are one number with one canonical form, and so are 0 and -0.
    return value + 0;
  }

  #object(depth: number): Json {
    // An object without a prototype, so that `__proto__` is an ordinary name.
    const made = Object.create(null) as JsonObject;
    this.#items("}", () => {
      if (this.#peek() !== '"') this.#syntax();
      const name = this.#string();
      if (this.#peek() !== ":") this.#syntax();
      this.#at++;
      if (name in made)
        this.#unsafe ??= new Refused(`the key "${name.slice(0, 40)}" stands twice in one object`, "json_duplicate_key");
      made[name] = this.#value(depth + 1);
    });
    return made;
  }

  #array(depth: number): Json {
    const made: Json[] = [];
    this.#items("]", () => made.push(this.#value(depth + 1)));
    return made;
  }

  #items(closing: string, item: () => void): void {
    this.#at++;
    if (this.#peek() !== closing) {
      for (item(); this.#peek() === ","; item()) this.#at++;
      if (this.#peek() !== closing) this.#syntax();
    }
    this.#at++;
  }

  #string(): string {
    const begin = this.#at++;
    while (this.text[this.#at] !== '"') {
      this.#at += this.text[this.#at] === "\\" ? 2 : 1;
      if (this.#at >= this.text.length) this.#syntax();
    }
    const literal = this.text.slice(begin, ++this.#at);
    let value: string;
    try {
      value = JSON.parse(literal) as string;
    } catch {
      return this.#syntax();
    }
    if (value.includes("\0")) this.#unsafe ??= new Refused("a string holds the character NUL", "json_nul");
    if (/\p{Surrogate}/u.test(value))
      this.#unsafe ??= new Refused("a string holds half of a surrogate pair", "json_surrogate");
    return value;
  }

  #peek(): string {
    while (" \t\n\r".includes(this.text[this.#at] ?? "-")) this.#at++;
    return this.text[this.#at] ?? "";
  }

  #syntax(): never {
    throw new Refused(`not JSON at character ${this.#at}`, "json_syntax");
  }
}

/** Encode a value by RFC 8785: JavaScript's own encoding, with the keys of objects in UTF-16 order. */
export function canonical(value: Json): Uint8Array<ArrayBuffer> {
  return utf8(write(value));
}

function write(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(write).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const fields = Object.keys(value)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${write(value[name] as Json)}`);
  return `{${fields.join(",")}}`;
}
