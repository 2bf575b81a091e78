/** A parser for server-sent events, without I/O. */
import { ReplyRefused } from "./errors.js";

// An event is a wire of at most 1,024 bytes plus its envelope; a longer one is not from RedKey.
const LONGEST_CHARACTERS = 1024 * 1024;

/** One event: its data, and the stream's id after it. An id without data is a cursor. */
export interface Message {
  id: string;
  data: string;
}

/** Feed it bytes and read messages. Lines may end with LF, CR LF or CR, and chunks may end inside a character. */
export class Parser {
  readonly #decoder = new TextDecoder();
  #rest = "";
  #id = "";
  #data: string[] = [];
  #size = 0;
  #begun = false;

  *feed(piece: Uint8Array): Generator<Message, void, undefined> {
    const text = this.#rest + this.#decoder.decode(piece, { stream: true });
    // A CR at the end may be the first half of a CR LF.
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
      // The standard says to ignore an id that contains NUL.
      [this.#id, this.#begun] = [value, true];
    }
  }
}
