/** What one OpenClaw gateway has with one RedKey server: its agents, the claims that they hold, and signs of life. */
import type { Config } from "./config.js";
import { Holds } from "./holds.js";
import { Identities, type Log } from "./identities.js";
import { ToolProblem } from "./problems.js";

// An agent of which nothing is recorded for 180 seconds is taken for lost.
const PRESENCE_SECONDS = 60;

export class Gateway {
  readonly identities: Identities;
  readonly holds: Holds;
  readonly leaseSeconds: number;
  readonly #stopping = new AbortController();
  readonly #claims = new Set<Promise<unknown>>();
  #agents: readonly string[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(
    config: Config,
    stateDirectory: string,
    readonly log: Log,
  ) {
    this.leaseSeconds = config.leaseSeconds ?? 60;
    this.identities = new Identities(config, stateDirectory, log);
    this.holds = new Holds(this.leaseSeconds, log);
  }

  /** Aborts when the gateway stops. */
  get stopping(): AbortSignal {
    return this.#stopping.signal;
  }

  /** Register these OpenClaw agents and show that they live; a server that is not there yet is waited for. */
  async start(agents: readonly string[]): Promise<void> {
    this.#agents = agents;
    clearInterval(this.#timer);
    this.#timer = setInterval(() => void this.#showPresence(), PRESENCE_SECONDS * 1000);
    this.#timer.unref();
    await this.#showPresence();
  }

  /** Give back what is held, and end everything that runs. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#stopping.abort(new ToolProblem("This gateway is stopping. Call again after the restart."));
    await this.holds.stop();
    // A claim request that is still open may win: wait for its answer; `Holds.add` gives the task back.
    await Promise.allSettled(this.#claims);
  }

  /** Run a claim to its end, whatever happens to the call that asked for it. */
  async claiming<Result>(claim: () => Promise<Result>): Promise<Result> {
    this.stopping.throwIfAborted();
    const running = claim();
    this.#claims.add(running);
    try {
      return await running;
    } finally {
      this.#claims.delete(running);
    }
  }

  async #showPresence(): Promise<void> {
    for (const name of this.#agents) {
      try {
        const { agentId, rk } = await this.identities.of(name);
        await rk.agents.heartbeat(agentId, { inUse: this.holds.of(name).length });
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        this.log.warn(`the agent ${name} is not at RedKey for now: ${reason}`);
      }
    }
  }
}
