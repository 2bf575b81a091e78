/** The time by the server's clock: this machine's may be wrong, and leases count down by the ledger's. */
class Clock {
  /** Milliseconds, renewed each second. */
  now = $state(Date.now());
  #offset = 0;

  constructor() {
    setInterval(() => this.#tick(), 1000);
  }

  /** An event was recorded just now, by the server's clock. */
  heard(timestamp: string): void {
    const offset = Date.parse(timestamp) - Date.now();
    // Less than this is the way of the event, not a wrong clock.
    this.#offset = Math.abs(offset) < 2000 ? 0 : offset;
    this.#tick();
  }

  #tick(): void {
    const now = Date.now() + this.#offset;
    if (Math.floor(now / 1000) !== Math.floor(this.now / 1000)) this.now = now;
  }
}

export const clock = new Clock();
