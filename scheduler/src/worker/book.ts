import type { Clock } from "../base/clock.ts";
import { CarillonError, messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { ClaimedRun, ClaimStore } from "../run/claim-store.ts";
import { guardMs } from "./bounds.ts";
import type { HeldRun } from "./running/held-run.ts";

/** The most heartbeats between two reads of this session's claims after a reply was lost. */
const pulsesMost = 32;

export interface BookHost {
  readonly claims: Pick<ClaimStore, "adopt" | "heldBy">;
  readonly clock: Clock;
  readonly log: Log;
  readonly held: ReadonlyMap<number, HeldRun>;
  sessionId(): number;
  take(ask: () => Promise<{ runs: ClaimedRun[] }>): Promise<unknown>;
  drop(run: HeldRun, reason: CarillonError): void;
  /** Called once the claims of all lost sessions have been moved: runs that waited for the move may start. */
  moved(): void;
  /** Called when the claims of a session that is still alive could not be read; the read is to be retried. */
  again(): void;
}

/** Brings this process's claims in line with the store's record of them ("the book") after a lost session or a lost reply. */
export class Book {
  readonly #host: BookHost;
  #inDoubt = false;
  /** `left`: heartbeats until the next read; `pause`: the number that `left` started from. Null: no reply has been lost yet. */
  #later: { left: number; pause: number } | null = null;
  /** Lost sessions whose claims are being moved to the new one. */
  readonly #moving = new Set<number>();

  constructor(host: BookHost) {
    this.#host = host;
  }

  /**
   * True while the claims of a lost session are being moved to the new one, because the store may have taken some of them back. Runs
   * claimed under the lost session do not start until the move is done, though the new session is valid.
   */
  get moving(): boolean {
    return this.#moving.size > 0;
  }

  /** True if the store may have claims of this session that this process does not hold. */
  get inDoubt(): boolean {
    return this.#inDoubt;
  }

  /** Called when a reply was lost, or when claimed runs were dropped. */
  doubt(): void {
    this.#inDoubt = true;
    this.#later = { left: 1, pause: 1 };
  }

  /**
   * Called at each answered heartbeat. A claim whose reply was lost may be committed long after this process gave it up, because a server
   * whose disk or standby stands still does not notice that the client is gone, and no read shows uncommitted rows. No event marks the
   * moment when this can no longer happen, so the claims are read again with the next heartbeat, and then after ever more heartbeats.
   * @returns whether this heartbeat made another read due
   */
  pulse(): boolean {
    const later = this.#later;
    if (later === null || --later.left > 0) return false;
    later.pause = Math.min(2 * later.pause, pulsesMost);
    later.left = later.pause;
    this.#inDoubt = true;
    return true;
  }

  /** @param lost the session that was lost; the same as `session` if only a reply was lost */
  async read(lost: number, session: number): Promise<void> {
    if (lost !== session) this.#moving.add(lost);
    await this.#read(lost, session);
  }

  /** @param again true if an earlier try may have moved the claims and its reply was lost: this try moves none, and reads them instead */
  async #read(lost: number, session: number, again = false): Promise<void> {
    const { claims, clock, log, held, take } = this.#host;
    const moved = lost !== session;
    const had = [...held.values()];
    // Cleared before the read: a reply that is lost during the read is a reason to read again.
    this.#inDoubt = false;
    try {
      await take(async () => {
        const adopted = moved ? await claims.adopt(lost, session) : [];
        const runs = moved && !again ? adopted : await claims.heldBy(session);
        if (moved) this.#dropTaken(lost, had, runs);
        return { runs };
      });
    } catch (error) {
      log.debug({ error: messageOf(error) }, "the claims on the store's book could not be read yet");
      this.#inDoubt = true;
      if (moved) clock.after(guardMs, () => void this.#read(lost, this.#host.sessionId(), true));
      else this.#host.again();
    }
  }

  /** Drops the runs of the lost session that the store has taken back. */
  #dropTaken(lost: number, had: HeldRun[], book: ClaimedRun[]): void {
    const { drop, log } = this.#host;
    const kept = new Set(book.map(({ fence }) => fence));
    const taken = new CarillonError("SESSION_LOST", "the claim was taken back while this process's session was lost");
    for (const run of had) {
      if (run.state !== "settling" && !kept.has(run.fence)) drop(run, taken);
      // Reports made under the new session before the move matched no claim, so they must be made again.
      run.reported = false;
    }
    this.#moving.delete(lost);
    if (!this.moving) this.#host.moved();
    log.info({ kept: kept.size }, "took over the claims of this process's lost session");
  }
}
