import { messageOf } from "../../../base/errors.ts";
import type { Database } from "../database.ts";
import { notifySql } from "./signals.ts";

/** The earliest due times among runs that were made ready, epoch ms; Infinity if there is no such run. */
export interface MadeReady {
  /** The earliest due time of a run that workers can claim. */
  ready: number;
  /** The earliest due time of a run that the router must address first. */
  direct: number;
}

/**
 * The shortest time between two signals of one process, in ms: receivers of the first signal are still busy until then. A process that has
 * enqueued nothing for this long counts as quiet.
 */
const apartMs = 3;
/** Runs that are due more than this time, in ms, from now are not announced: nodes poll the next due time more often than that. */
const soonMs = 60_000;
/** Open transactions are checked again after as long as the newest of them has been open, within these bounds in ms. */
const [soonestLookMs, latestLookMs] = [1, 250];
/** Runs of a transaction that stays open longer than this, in ms, are not announced; the workers' polls find them. */
const openMostMs = 60_000;

/** The runs enqueued in a caller's transaction that was still open at the last check. */
interface Open {
  due: MadeReady;
  sinceMono: number;
}

/**
 * Signals this process's enqueues to the other processes. PostgreSQL lets only one transaction at a time commit a NOTIFY, and blocks the
 * others until its log is on disk: with 32 clients that enqueue one by one, a signal in each of their transactions reduced the rate by two
 * thirds. So signals are sent after the commit, in transactions that write nothing, and one signal per 3 ms covers everything that was
 * enqueued meanwhile. For a caller's transaction, the announcer polls the transaction's status by its number, and signals after the commit.
 * A quiet process enqueues and signals in the same statement, which saves one round trip until another process claims the run.
 *
 * If a process dies between a commit and its signal, the workers' polls find its runs, as after a lost signal.
 */
export class Announcer {
  readonly #database: Database;
  readonly #tellSql: string;
  readonly #open = new Map<string, Open>();
  #due = nothing();
  #sending: Promise<void> | undefined;
  #sentMono = Number.NEGATIVE_INFINITY;
  #enqueuedMono = Number.NEGATIVE_INFINITY;
  #cancelSend: (() => void) | undefined;
  #cancelLook: (() => void) | undefined;
  #looking: Promise<void> | undefined;

  constructor(database: Database) {
    this.#database = database;
    this.#tellSql = `select ${notifySql(database.schema, "kind || ' ' || due")} from unnest($1::text[], $2::bigint[]) as i (kind, due)`;
  }

  /**
   * Called when an enqueue begins.
   * @returns true if the enqueue's statement must send the signal itself; false if that is left to `committed`
   */
  carriesOwn(dueMs: number, nowMs: number): boolean {
    const mono = this.#database.clock.monotonic();
    const isQuiet = Math.min(mono - this.#enqueuedMono, mono - this.#sentMono) >= apartMs && !this.#sending;
    this.#enqueuedMono = mono;
    if (!isQuiet || dueMs > nowMs + soonMs) return false;
    this.#sentMono = mono;
    return true;
  }

  /** Signals runs whose transaction is committed. @param nowMs the time of the store's clock */
  committed(due: MadeReady, nowMs: number): void {
    if (!isSoon(due, nowMs)) return;
    join(this.#due, due);
    this.#send();
  }

  /** Signals runs once the transaction with the number `xid` is committed. */
  inTransaction(xid: string, due: MadeReady, nowMs: number): void {
    if (!isSoon(due, nowMs)) return;
    const open = this.#open.get(xid);
    if (open) join(open.due, due);
    else {
      this.#open.set(xid, { due: { ...due }, sinceMono: this.#database.clock.monotonic() });
      this.#lookAfter(soonestLookMs);
    }
  }

  /** Sends the waiting signals. Runs of transactions that are still open are not announced; the workers' polls find them. */
  async close(): Promise<void> {
    await this.announced();
    this.#cancelLook?.();
    this.#open.clear();
  }

  /** Resolves when the signals for all runs that were committed before the call have been sent or have failed. */
  async announced(): Promise<void> {
    await this.#looking;
    if (this.#open.size > 0) await this.#look();
    // When a signal took longer than `apartMs`, the next one is sent at once.
    while (this.#sending) await this.#sending;
    this.#cancelSend?.();
    this.#cancelSend = undefined;
    if (!isNothing(this.#due)) await this.#sendAll();
  }

  #send(): void {
    if (this.#sending || this.#cancelSend) return;
    const { clock } = this.#database;
    const inMs = this.#sentMono + apartMs - clock.monotonic();
    if (inMs > 0) {
      this.#cancelSend = clock.after(inMs, () => {
        this.#cancelSend = undefined;
        this.#send();
      });
      return;
    }
    this.#sending = this.#sendAll().finally(() => {
      this.#sending = undefined;
      if (!isNothing(this.#due)) this.#send();
    });
  }

  async #sendAll(): Promise<void> {
    const { clock, log } = this.#database;
    const said = Object.entries(this.#due).filter(([, dueMs]) => dueMs !== Number.POSITIVE_INFINITY);
    this.#due = nothing();
    this.#sentMono = clock.monotonic();
    try {
      await this.#database.ask("announce", this.#tellSql, [
        said.map(([kind]) => kind),
        said.map(([, dueMs]) => Math.round(dueMs)),
      ]);
    } catch (error) {
      log.debug({ error: messageOf(error) }, "what was enqueued could not be announced; the workers' pulses find it");
    }
  }

  #lookAfter(ms: number): void {
    this.#cancelLook?.();
    this.#cancelLook = this.#database.clock.after(ms, () => {
      this.#looking ??= this.#look().finally(() => {
        this.#looking = undefined;
      });
    });
  }

  /** Checks which of the open transactions have ended, and signals the runs of those that committed. */
  async #look(): Promise<void> {
    const { clock, log } = this.#database;
    try {
      const rows = await this.#database.ask<{ xid: string; status: string | null }>(
        "announce-look",
        "select xid, pg_xact_status(xid::xid8) as status from unnest($1::text[]) as i (xid)",
        [[...this.#open.keys()]],
      );
      for (const { xid, status } of rows) {
        const open = this.#open.get(xid) as Open;
        if (status === "in progress" && clock.monotonic() - open.sinceMono < openMostMs) continue;
        this.#open.delete(xid);
        if (status !== "committed") continue;
        join(this.#due, open.due);
        this.#send();
      }
    } catch (error) {
      // Another database server may have replaced the previous one, and may not have reached these transaction numbers yet.
      this.#open.clear();
      log.debug({ error: messageOf(error) }, "what was enqueued in transactions is left to the workers' pulses");
    }
    const newest = [...this.#open.values()].at(-1);
    if (!newest) return;
    const openMs = clock.monotonic() - newest.sinceMono;
    this.#lookAfter(Math.min(Math.max(openMs, soonestLookMs), latestLookMs));
  }
}

const nothing = (): MadeReady => ({ ready: Number.POSITIVE_INFINITY, direct: Number.POSITIVE_INFINITY });

const isNothing = ({ ready, direct }: MadeReady): boolean => Math.min(ready, direct) === Number.POSITIVE_INFINITY;

const isSoon = ({ ready, direct }: MadeReady, nowMs: number): boolean => Math.min(ready, direct) <= nowMs + soonMs;

function join(one: MadeReady, other: MadeReady): void {
  one.ready = Math.min(one.ready, other.ready);
  one.direct = Math.min(one.direct, other.direct);
}
