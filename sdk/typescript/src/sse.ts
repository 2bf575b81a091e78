/** Server-sent events, read from bytes as they come: a parser without I/O. */
import { ReplyRefused } from "./errors.js";

// An event is a wire of at most 1,024 bytes with a little around it; more than this is no stream of ours.
const LONGEST_CHARACTERS = 1024 * 1024;

/** One event: its data, and the id of the stream after it. A bare id is a cursor without data. */
export interface Message {
  id: string;
  data: string;
}

/** Feed it bytes, get messages. Lines may end with LF, CR LF or CR, and pieces may end inside a character. */
export class Parser {
  readonly #decoder = new TextDecoder();
  #rest = "";
  #id = "";
  #data: string[] = [];
  #size = 0;
  #begun = false;

  *feed(piece: Uint8Array): Generator<Message, void, undefined> {
    const text = this.#rest + this.#decoder.decode(piece, { stream: true });
    // A CR at the very end may be half of a CR LF.
    const held = text.endsWith("\r") ? "\r" : "";
    const lines = (held ? text.slice(0, -1) : text).split(/\r\n|\n|\r/);
    this.#rest = lines.pop() + held;
    if (this.#rest.length + this.#size > LONGEST_CHARACTERS)
      throw new ReplyRefused("an event of the stream has no end");
    for (const line of lines) {
      if (line) {
        this.#field(line);
      } else {
        const message = { id: this.#id, data: this.#data.join("\n") };
        const whole = message.data || this.#begun;
        [this.#data, this.#size, this.#begun] = [[], 0, false];
        if (whole) yield message;
      }
    }
  }

  #field(line: string): void {
    const [, name, value = ""] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
    if (name === "data") {
      this.#data.push(value);
      this.#size += value.length;
    } else if (name === "id" && !value.includes("\0")) {
      // An id with a NUL is to be ignored, says the standard.
      [this.#id, this.#begun] = [value, true];
    }
  }
}
