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

  /**
   * Run an action and tell how it went; what it returned, or undefined when it was refused. Where the reply does not
   * name the event, `event` says what it is about.
   */
  async run<Reply>(done: string, action: () => Promise<Reply>, event?: { type: string; id: string }): Promise<Reply | undefined> {
    this.busy = true;
    try {
      const reply = await action();
      const eventId = (reply as { eventId?: string | null } | undefined)?.eventId ?? (event ? await newest(event.type, event.id) : "");
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

/** The id of the newest event of a type about something. */
async function newest(type: string, id: string): Promise<string> {
  const { items } = await session.client.ledger.query({ type, order: "desc", limit: 50 }).page();
  return items.find((event) => event.subject.id === id)?.eventId ?? "";
}

/** What an error says, with the next step when it has one. */
export function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export const acts = new Acts();
