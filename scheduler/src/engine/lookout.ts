import type { Log } from "../base/log.ts";
import type { Membership } from "../cluster/membership.ts";
import type { Pulse } from "../cluster/session-store.ts";

export interface LookoutOptions {
  membership: Membership;
  log: Log;
}

/** Guarantees that the leader logs, once, that runs wait because no worker can take them, and logs once more when they go on. */
export class Lookout {
  readonly #options: LookoutOptions;
  #told = new Set<string>();

  constructor(options: LookoutOptions) {
    this.#options = options;
  }

  onPulse({ unserved }: Pulse): void {
    const { membership, log } = this.#options;
    if (membership.term() === null) {
      this.#told.clear();
      return;
    }
    if (!unserved) return; // only some beats query the unclaimable runs
    for (const what of unserved) {
      if (this.#told.has(what)) continue;
      log.warn({ what }, "runs wait and no live worker can take them; see carillon doctor");
    }
    for (const what of this.#told)
      if (!unserved.includes(what)) log.info({ what }, "no run waits for a worker any more");
    this.#told = new Set(unserved);
  }
}
