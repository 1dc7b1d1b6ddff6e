import type { Clock } from "../base/clock.ts";
import { CarillonError, messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { ClaimedRun, ClaimStore } from "../run/claim-store.ts";
import { guardMs } from "./bounds.ts";
import type { HeldRun } from "./running/held-run.ts";

/** Between two reads of a book that was in doubt at some time. */
const pulsesMost = 32;

export interface BookHost {
  readonly claims: Pick<ClaimStore, "adopt" | "heldBy">;
  readonly clock: Clock;
  readonly log: Log;
  readonly held: ReadonlyMap<number, HeldRun>;
  sessionId(): number;
  take(ask: () => Promise<{ runs: ClaimedRun[] }>): Promise<unknown>;
  drop(run: HeldRun, reason: CarillonError): void;
  /** Nothing is being moved any more: what waited for that may start. */
  moved(): void;
  /** The book of a session that lives on could not be read: to be tried again. */
  again(): void;
}

/** Brings the store's book of this process's claims and the process together, after a lost session or a lost reply. */
export class Book {
  readonly #host: BookHost;
  #inDoubt = false;
  /** Pulses until it is read again, and how many that was; null: no reply was lost yet. */
  #later: { left: number; pause: number } | null = null;
  /** Lost sessions whose claims are being moved to the new one. */
  readonly #moving = new Set<number>();

  constructor(host: BookHost) {
    this.#host = host;
  }

  /**
   * The claims of a lost session are being moved to the new one, and may have been taken back: what was held under it is
   * not started until that is known, though the new session is sure.
   */
  get moving(): boolean {
    return this.#moving.size > 0;
  }

  /** It may have claims that this process does not hold. */
  get inDoubt(): boolean {
    return this.#inDoubt;
  }

  /** A reply was lost, or what was claimed was dropped. */
  doubt(): void {
    this.#inDoubt = true;
    this.#later = { left: 1, pause: 1 };
  }

  /**
   * A beat was answered. A claim whose reply was lost may be made long after it was given up: a server whose disk or standby
   * stands still does not notice that nobody waits, and no read shows what it has not committed. When that is over nobody
   * can say, so the book is read again with the next beat, and then ever more seldom.
   * @returns whether it is in doubt by that
   */
  pulse(): boolean {
    const later = this.#later;
    if (later === null || --later.left > 0) return false;
    later.pause = Math.min(2 * later.pause, pulsesMost);
    later.left = later.pause;
    this.#inDoubt = true;
    return true;
  }

  /** @param lost the session that was lost; the same as `session`: only a reply was */
  async read(lost: number, session: number): Promise<void> {
    if (lost !== session) this.#moving.add(lost);
    await this.#read(lost, session);
  }

  /** @param again an earlier try may have moved them, and its reply be lost: then this one moves none */
  async #read(lost: number, session: number, again = false): Promise<void> {
    const { claims, clock, log, held, take } = this.#host;
    const moved = lost !== session;
    const had = [...held.values()];
    // Before the book is read: a reply that is lost meanwhile is a reason to read it again.
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

  /** Of what the lost session had, drops what the store has taken back. */
  #dropTaken(lost: number, had: HeldRun[], book: ClaimedRun[]): void {
    const { drop, log } = this.#host;
    const kept = new Set(book.map(({ fence }) => fence));
    const taken = new CarillonError("SESSION_LOST", "the claim was taken back while this process's session was lost");
    for (const run of had) {
      if (run.state !== "settling" && !kept.has(run.fence)) drop(run, taken);
      // Reports made under the new session before this found nothing.
      run.reported = false;
    }
    this.#moving.delete(lost);
    if (!this.moving) this.#host.moved();
    log.info({ kept: kept.size }, "took over the claims of this process's lost session");
  }
}
