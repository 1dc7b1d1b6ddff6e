import type { Log } from "../base/log.ts";
import type { Membership } from "../cluster/membership.ts";
import type { Pulse } from "../cluster/session-store.ts";

export interface UnclaimableRunsOptions {
  membership: Membership;
  log: Log;
}

/** Guarantees that the leader logs once when runs wait that no worker can run, and once more when they no longer wait. */
export class UnclaimableRuns {
  readonly #options: UnclaimableRunsOptions;
  #told = new Set<string>();

  constructor(options: UnclaimableRunsOptions) {
    this.#options = options;
  }

  onPulse({ unserved }: Pulse): void {
    const { membership, log } = this.#options;
    if (membership.term() === null) {
      this.#told.clear();
      return;
    }
    if (!unserved) return; // only some heartbeats query such runs
    const now = new Set(unserved);
    const begun = unserved.filter((what) => !this.#told.has(what));
    const over = [...this.#told].filter((what) => !now.has(what));
    if (begun.length > 0)
      log.warn({ what: some(begun) }, "runs wait and no live worker can take them; see carillon doctor");
    if (over.length > 0) log.info({ what: some(over) }, "no run waits for a worker any more");
    this.#told = now;
  }
}

const namedMost = 5;

function some(what: string[]): string {
  const named = what.slice(0, namedMost).join(", ");
  return what.length > namedMost ? `${named} and ${what.length - namedMost} more` : named;
}
