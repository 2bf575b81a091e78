/** The state of one OpenClaw gateway at one RedKey server: its agents, their claims, and heartbeats. */
import type { Config } from "./config.js";
import { Holds } from "./holds.js";
import { Identities, type Log } from "./identities.js";
import { ToolProblem } from "./problems.js";

// The server marks an agent as lost after 180 seconds without a recorded heartbeat.
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

  /** Register these OpenClaw agents and send their heartbeats; wait for a server that is not running yet. */
  async start(agents: readonly string[]): Promise<void> {
    this.#agents = agents;
    clearInterval(this.#timer);
    this.#timer = setInterval(() => void this.#showPresence(), PRESENCE_SECONDS * 1000);
    this.#timer.unref();
    await this.#showPresence();
  }

  /** Release all claims, and end everything that runs. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#stopping.abort(new ToolProblem("This gateway is stopping. Call again after the restart."));
    await this.holds.stop();
    // A claim request that is still open may win: wait for its answer; `Holds.add` gives the task back.
    await Promise.allSettled(this.#claims);
  }

  /** Run a claim to its end, even if the call that asked for it ends first. */
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
        this.log.warn(`the agent ${name} cannot be reported to RedKey for now: ${reason}`);
      }
    }
  }
}
