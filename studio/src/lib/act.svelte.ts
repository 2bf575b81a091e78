/** Actions: each is sent once, and shows the event that it became, with its receipt, or why it was refused. */
import { session } from "./session.svelte";

export interface Notice {
  id: number;
  text: string;
  bad: boolean;
  eventId: string;
}

class Acts {
  notices = $state.raw<Notice[]>([]);
  busy = $state(false);
  #last = 0;

  /** Run an action and tell how it went; what it returned, or undefined when it was refused. */
  async run<Reply>(done: string, action: () => Promise<Reply>): Promise<Reply | undefined> {
    this.busy = true;
    try {
      const reply = await action();
      const eventId = (reply as { eventId?: string | null } | undefined)?.eventId ?? "";
      this.tell(done, { eventId });
      return reply;
    } catch (error) {
      if (!session.endsWith(error)) this.tell(reason(error), { bad: true });
      return undefined;
    } finally {
      this.busy = false;
    }
  }

  tell(text: string, { bad = false, eventId = "" } = {}): void {
    const notice = { id: ++this.#last, text, bad, eventId };
    this.notices = [...this.notices.slice(-3), notice];
    // A refusal stays until it is closed: it says what to do next.
    if (!bad) setTimeout(() => this.close(notice.id), 12_000);
  }

  close(id: number): void {
    this.notices = this.notices.filter((notice) => notice.id !== id);
  }
}

/** What an error says, with the next step when it has one. */
export function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export const acts = new Acts();
