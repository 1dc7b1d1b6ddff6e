import type { Clock } from "../base/clock.ts";
import { CarillonError, messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { ClaimedRun, ClaimStore } from "../run/claim-store.ts";
import { guardMs } from "./bounds.ts";
import type { HeldRun } from "./running/held-run.ts";

/** The most heartbeats between two reads of this session's claims after a reply was lost. */
const pulsesMost = 32;

export interface ClaimSyncHost {
  readonly claims: Pick<ClaimStore, "adopt" | "heldBy">;
  readonly clock: Clock;
  readonly log: Log;
  readonly held: ReadonlyMap<number, HeldRun>;
  sessionId(): number;
  take(ask: () => Promise<{ runs: ClaimedRun[] }>): Promise<unknown>;
  drop(run: HeldRun, reason: CarillonError): void;
  /** Called once the claims of all lost sessions have been moved to the new session, so that runs that waited for this may start. */
  moved(): void;
  /** Called when the claims of a session that is still alive could not be read, so that the caller tries again. */
  again(): void;
}

/** Synchronises this process's claims with the store's records of them ("the book") after a session or a reply was lost. */
export class ClaimSync {
  readonly #host: ClaimSyncHost;
  #inDoubt = false;
  /** `left`: heartbeats until the next read; `pause`: the number from which `left` counts down. null if no reply has been lost. */
  #later: { left: number; pause: number } | null = null;
  /** The numbers of lost sessions whose claims are being moved to the new session. */
  readonly #moving = new Set<number>();

  constructor(host: ClaimSyncHost) {
    this.#host = host;
  }

  /**
   * True while the claims of a lost session are being moved to the new one. The store may have reclaimed some of them, so runs claimed
   * under the lost session do not start before the move is done, although the new session is valid.
   */
  get moving(): boolean {
    return this.#moving.size > 0;
  }

  /** True if the store may have claims of this session of which this process does not know. */
  get inDoubt(): boolean {
    return this.#inDoubt;
  }

  /** Called when a reply was lost, or when this process dropped claimed runs. */
  doubt(): void {
    this.#inDoubt = true;
    this.#later = { left: 1, pause: 1 };
  }

  /**
   * Called at each answered heartbeat. A claim whose reply was lost may be committed long after this process gave it up: a server whose
   * disk or standby has stalled does not notice that the client is gone, and no read shows uncommitted rows. Nothing signals when this can
   * no longer happen, so the claims are read again at the next heartbeat, and then at ever longer intervals.
   * @returns true if the claims must be read again now
   */
  pulse(): boolean {
    const later = this.#later;
    if (later === null || --later.left > 0) return false;
    later.pause = Math.min(2 * later.pause, pulsesMost);
    later.left = later.pause;
    this.#inDoubt = true;
    return true;
  }

  /**
   * Moves the claims of a lost session to the present one, or reads the present session's claims.
   * @param lost the number of the lost session; the same as `session` if only a reply was lost
   */
  async read(lost: number, session: number): Promise<void> {
    if (lost !== session) this.#moving.add(lost);
    await this.#read(lost, session);
  }

  /** @param again true if an earlier call may have moved the claims although its reply was lost; then the claims are also read */
  async #read(lost: number, session: number, again = false): Promise<void> {
    const { claims, clock, log, held, take } = this.#host;
    const moved = lost !== session;
    const had = [...held.values()];
    // This is reset before the read, so that a reply that is lost during the read causes another read.
    this.#inDoubt = false;
    try {
      await take(async () => {
        const adopted = moved ? await claims.adopt(lost, session) : [];
        const runs = moved && !again ? adopted : await claims.heldBy(session);
        if (moved) this.#dropTaken(lost, had, runs);
        return { runs };
      });
    } catch (error) {
      log.debug({ error: messageOf(error) }, "the store's claims could not be read yet");
      this.#inDoubt = true;
      if (moved) clock.after(guardMs, () => void this.#read(lost, this.#host.sessionId(), true));
      else this.#host.again();
    }
  }

  /** Drops the runs of the lost session that the store has reclaimed. */
  #dropTaken(lost: number, had: HeldRun[], book: ClaimedRun[]): void {
    const { drop, log } = this.#host;
    const kept = new Set(book.map(({ fence }) => fence));
    const taken = new CarillonError("SESSION_LOST", "the claim was taken back while this process's session was lost");
    for (const run of had) {
      if (run.state !== "settling" && !kept.has(run.fence)) drop(run, taken);
      // Reports under the new session before the move matched no claim, so the runs must be reported again.
      run.reported = false;
    }
    this.#moving.delete(lost);
    if (!this.moving) this.#host.moved();
    log.info({ kept: kept.size }, "took over the claims of this process's lost session");
  }
}
