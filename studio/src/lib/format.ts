/** Words for times, ids and amounts. */

/** The last eight characters of an id, which tell ids of one kind apart. */
export function shortId(id: string): string {
  const [kind = "", rest = ""] = id.split(/_(.*)/s);
  return /^[0-9A-HJKMNP-TV-Z]{26}$/.test(rest) ? `${kind}_…${rest.slice(-6)}` : id;
}

/** A name without the word for its kind: `role_researcher` is `researcher`. */
export function bareName(id: string): string {
  return id.replace(/^(role|queue)_/, "");
}

/** A span of time in its two largest units. */
export function span(milliseconds: number): string {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return seconds % 60 && minutes < 10 ? `${minutes} min ${seconds % 60} s` : `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  return `${Math.floor(hours / 24)} days`;
}

export function ago(timestamp: string | null | undefined, now: number): string {
  if (!timestamp) return "never";
  const passed = now - Date.parse(timestamp);
  return passed < 1500 ? "just now" : `${span(passed)} ago`;
}

// Made once, and not before it is needed: to make one takes longer than to draw a line of events.
let clockFormat: Intl.DateTimeFormat | undefined;

export function time(timestamp: string | null | undefined): string {
  if (!timestamp) return "";
  const date = new Date(timestamp);
  const today = date.toDateString() === new Date().toDateString();
  clockFormat ??= new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
  const clock = clockFormat.format(date);
  return today ? clock : `${date.toLocaleDateString()} ${clock}`;
}

export function bytes(count: number): string {
  if (count < 1000) return `${count} B`;
  if (count < 1_000_000) return `${(count / 1000).toFixed(1)} kB`;
  return `${(count / 1_000_000).toFixed(1)} MB`;
}

export function money(dollars: number): string {
  return dollars && dollars < 0.01 ? `$${dollars.toFixed(4)}` : `$${dollars.toFixed(2)}`;
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString()} ${count === 1 ? one : many}`;
}

// The words of the glossary, where they differ from those of the API.
const STATES: Record<string, string> = { available: "ready", created: "waiting", working: "in progress" };

/** The state of a task or run in words. */
export function stateWord(state: string): string {
  return STATES[state] ?? state.replaceAll("_", " ");
}
