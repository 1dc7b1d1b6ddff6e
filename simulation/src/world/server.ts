import pg from "pg";
import { tripwire } from "./tripwire.ts";
import { Universe } from "./universe.ts";
import { type Reply, Wire } from "./wire.ts";

export interface Statement {
  readonly name: string;
  readonly text: string;
  readonly values: unknown[];
}

export type Answer = Reply;

/** The server's state for one simulated connection. */
export interface Backend {
  readonly who: string;
  /** The real connection on which the simulated connection's open transaction runs. */
  held: Physical | undefined;
  /** Set while the connection's last statement waits for a lock. */
  blocked: Promise<void> | undefined;
  listening: ((payload: string) => void) | undefined;
}

interface Physical {
  readonly wire: Wire;
  /** Distinct payloads notified by the open transaction, or by a statement outside of one; they are delivered at the commit. */
  readonly told: Set<string>;
  busy: boolean;
}

export interface ServerOptions {
  readonly url: string;
  readonly types: pg.CustomTypesConfig;
  /** Called with the server process id of each new real connection. */
  readonly onConnection: (pid: number) => void;
}

interface Blocked {
  /** Process ids of the backends whose locks the statement waits for, directly or indirectly. */
  behind: ReadonlySet<number>;
  /** Checks again whether the statement has ended. @returns true if it has */
  look: () => Promise<boolean>;
}

/** Beginning of the statement that the scheduler sends first on each connection (`isPooled` in pooler.ts). */
const settles = "select true as direct,";
const nothing: Answer = { rows: [], rowCount: 0, tag: "", error: undefined };

type Watch = (who: string, statement: Statement, rows: Record<string, unknown>[], storeMs: number) => void;

/** Wait in ms before a running statement is checked for a lock; longer than the server takes to detect a deadlock (`deadlock_timeout`). */
const lockLookMs = 4;
const sessionSettings =
  "-c synchronous_commit=off -c jit=off -c plan_cache_mode=force_generic_plan -c deadlock_timeout=1ms -c timezone=UTC " +
  "-c track_activities=off -c track_counts=off -c update_process_title=off";
const clockCall = "clock_timestamp()";
const writing = /\b(?:insert|update|delete)\b/i;
const plain = (text: string): Statement => ({ name: "", text, values: [] });
/**
 * Matches the value of `idle_in_transaction_session_timeout`, which is replaced by 0: the server would measure this time limit by its
 * real clock, which continues while simulated time stands still.
 */
const idleLimit = /(?<=idle_in_transaction_session_timeout = )'\w+'/;
const ownClock = /\b(?:now\(\)|current_timestamp|localtimestamp|transaction_timestamp\(\)|statement_timestamp\(\))/i;

/**
 * A real PostgreSQL behind the simulated network. Statements run one at a time, in the order in which they arrive, and the universe's
 * time stands still meanwhile. Statements outside of a transaction share one connection, so that each is planned once. Each open
 * transaction has its own connection, so that transactions interleave as in production. While a statement waits for a lock, the
 * transactions that hold the lock continue, and other open transactions are held back: if two statements waited for one lock, the server
 * would wake both, and their order would be random.
 *
 * A notification is sent as a notice on the connection that issues it (see Stage). It is delivered at the commit, before the answer,
 * and each payload once. A real NOTIFY is not used, because it arrives at an unpredictable moment and wakes every connection.
 */
export class Server {
  readonly #options: ServerOptions;
  readonly #idle: Physical[] = [];
  readonly #all: Physical[] = [];
  readonly #listeners = new Set<Backend>();
  readonly #backends = new Set<Backend>();
  /** Backends whose commit waits for the stalled disk. The commit happens even if the client has gone, unless the server dies first. */
  readonly #committing = new Set<Backend>();
  #watch: Watch = () => undefined;
  readonly #blocked = new Map<Physical, Blocked>();
  #kept: { backend: Backend; go: () => void | Promise<void> }[] = [];
  readonly #texts = new Map<string, { asked: string; asksClock: boolean }>();
  #admin: pg.Client | undefined;
  #universe = new Universe();
  #wallAheadMs = 0;
  #stalledUntilMs = 0;
  statements = 0;
  /** Number of statements that had to wait for a lock. */
  waited = 0;

  constructor(options: ServerOptions) {
    this.#options = options;
  }

  wallMs(): number {
    return this.#universe.nowMs + this.#wallAheadMs;
  }

  stepWall(ms: number): void {
    this.#wallAheadMs += ms;
  }

  /** Simulates a disk or a synchronous standby that does not respond for `ms`: reads are answered, commits wait until the stall ends. */
  stall(ms: number): void {
    this.#stalledUntilMs = Math.max(this.#stalledUntilMs, this.#universe.nowMs + ms);
  }

  /** Simulates the server's death: transactions whose commit still waits for the disk are rolled back. */
  async dies(): Promise<void> {
    this.#stalledUntilMs = 0;
    for (const backend of [...this.#committing]) await this.#rollBack(backend);
  }

  /** Another server replaces this one: every transaction is rolled back, even of clients that have not noticed the lost connection. */
  async isReplaced(): Promise<void> {
    this.#stalledUntilMs = 0;
    for (const backend of [...this.#backends]) await this.#rollBack(backend);
  }

  /**
   * Begins a new seed. The real connections keep their prepared statements, but their plans are discarded: a plan depends on the sizes of
   * the tables when it was made, so a plan of an earlier seed could return rows in another order.
   * @param wallMs the server's wall clock at the beginning, epoch ms
   */
  begin(universe: Universe, wallMs: number, watch: Watch): void {
    for (const { wire } of this.#all) wire.askNow("discard plans", []);
    this.#watch = watch;
    this.#universe = universe;
    this.#wallAheadMs = wallMs - universe.nowMs;
    this.#stalledUntilMs = 0;
    this.#listeners.clear();
    this.#kept = [];
  }

  connect(who: string): Backend {
    const backend = { who, held: undefined, blocked: undefined, listening: undefined };
    this.#backends.add(backend);
    return backend;
  }

  /** Ends a simulated connection and rolls back its open transaction, unless the transaction's commit is in progress. */
  async disconnect(backend: Backend): Promise<void> {
    this.#listeners.delete(backend);
    this.#backends.delete(backend);
    // A commit in progress completes, because the server does not notice that the client is gone.
    if (this.#committing.has(backend)) return;
    await this.#rollBack(backend);
  }

  async #rollBack(backend: Backend): Promise<void> {
    this.#committing.delete(backend);
    this.#kept = this.#kept.filter((kept) => kept.backend !== backend);
    // PostgreSQL notices a lost client only when it sends the answer, so the statement would continue once the lock is free. It is
    // cancelled instead.
    const { held } = backend;
    if (backend.blocked && held) {
      await this.#adminQuery("select pg_cancel_backend($1)", [held.wire.pid]);
      await backend.blocked;
      this.#blocked.delete(held);
      backend.blocked = undefined;
    }
    if (backend.held) await this.execute(backend, plain("rollback"), () => undefined);
  }

  /**
   * Runs one statement, or holds it back while other statements wait for locks. If the call returns a promise, the promise resolves when
   * the statement has ended or is known to wait for a lock.
   * @param answered called when the statement has ended
   */
  execute(backend: Backend, given: Statement, answered: (answer: Answer) => void): void | Promise<void> {
    this.statements++;
    const physical = backend.held ?? this.#free(/^\s*begin/i.test(given.text));
    if (physical) return this.#on(physical, backend, given, answered);
    return this.#open().then((opened) => this.#on(opened, backend, given, answered));
  }

  #on(
    physical: Physical,
    backend: Backend,
    given: Statement,
    answered: (answer: Answer) => void,
  ): void | Promise<void> {
    const { text, values } = this.#onOurTime(given);
    const word = text.trimStart().slice(0, 8).toLowerCase();
    physical.busy = true;
    if (word.startsWith("begin")) {
      backend.held = physical;
      physical.wire.begin(text);
      return answered(nothing);
    }
    // The real connections are opened with these session settings, so the statement is not sent to the server.
    if (text.startsWith(settles)) {
      this.#release(physical);
      return answered(nothing);
    }
    if (word.startsWith("listen")) {
      backend.listening ??= () => undefined;
      this.#listeners.add(backend);
      this.#release(physical);
      return answered(nothing);
    }
    const ends = word.startsWith("commit") || word.startsWith("rollback");
    if (backend.held && !ends && !this.#mayGoOn(physical)) {
      this.#kept.push({ backend, go: () => this.execute(backend, given, answered) });
      return;
    }
    if (ends && physical.wire.isUnsent) {
      physical.wire.forgetBegin();
      backend.held = undefined;
      this.#release(physical);
      return answered(nothing);
    }
    const stallMs = this.#stalledUntilMs - this.#universe.nowMs;
    if (stallMs > 0 && !this.#committing.has(backend)) {
      if (word.startsWith("commit")) return this.#commitAfter(stallMs, backend, given, answered);
      if (!backend.held && writing.test(text)) {
        this.#release(physical);
        return this.#writeAfter(stallMs, backend, given, answered);
      }
    }
    const finish = (answer: Answer) => {
      this.#blocked.delete(physical);
      backend.blocked = undefined;
      // A rollback ends the transaction, and so does a commit, which rolls back a failed transaction.
      if (!backend.held || ends) {
        backend.held = undefined;
        this.#release(physical);
        this.#committing.delete(backend);
      }
      // A statement whose commit waits for the disk is reported to `#watch` after the commit.
      if (!answer.error && (ends || !this.#committing.has(backend)))
        this.#watch(backend.who, given, answer.rows, this.wallMs());
      if (!backend.held) {
        const told = [...physical.told];
        physical.told.clear();
        if (!answer.error && answer.tag !== "ROLLBACK") for (const payload of told) this.#announce(payload);
      }
      answered(answer);
    };
    if (!this.#isAlone(physical)) return this.#beside(physical, backend, physical.wire.ask(text, values), finish);
    finish(physical.wire.askNow(text, values));
    if (this.#kept.length > 0) return this.#letGo();
  }

  #commitAfter(ms: number, backend: Backend, given: Statement, answered: (answer: Answer) => void): void {
    this.#committing.add(backend);
    this.#universe.after(ms, () =>
      this.#committing.has(backend) ? this.execute(backend, given, answered) : undefined,
    );
  }

  /** Executes a single statement in a transaction, which takes its locks now and commits after `ms`. */
  #writeAfter(
    ms: number,
    backend: Backend,
    given: Statement,
    answered: (answer: Answer) => void,
  ): void | Promise<void> {
    const until = this.#universe.nowMs + ms;
    const write = () => {
      this.#committing.add(backend);
      return this.execute(backend, given, (answer) => {
        const leftMs = answer.error ? 0 : Math.max(0, until - this.#universe.nowMs);
        this.#universe.after(leftMs, () =>
          this.#committing.has(backend)
            ? this.execute(backend, plain("commit"), (done) => {
                if (!done.error) this.#watch(backend.who, given, answer.rows, this.wallMs());
                answered(done.error ? done : answer);
              })
            : undefined,
        );
      });
    };
    const begun = this.execute(backend, plain("begin"), () => undefined);
    return begun ? begun.then(write) : write();
  }

  /** Runs a statement without blocking the process, because it may have to wait for a lock of another connection. */
  async #beside(
    physical: Physical,
    backend: Backend,
    asked: Promise<Answer>,
    finish: (answer: Answer) => void,
  ): Promise<void> {
    let answer: Answer | undefined;
    const running = asked.then((reply) => {
      answer = reply;
    });
    const behind = await this.#unlessBlocked(physical, running, () => answer !== undefined);
    if (answer === undefined) {
      this.waited++;
      backend.blocked = running;
      const blocked: Blocked = {
        behind,
        look: async () => {
          blocked.behind = await this.#unlessBlocked(physical, running, () => answer !== undefined);
          if (answer === undefined) return false;
          finish(answer);
          return true;
        },
      };
      this.#blocked.set(physical, blocked);
    } else {
      finish(answer);
      if (this.#blocked.size > 0 && this.#letsGo(physical, backend, (answer as Answer).error))
        await this.#lookAtBlocked();
    }
    if (this.#kept.length > 0) await this.#letGo();
  }

  /**
   * Returns an idle connection; undefined if there is none. Single statements use the first connection and transactions use the others,
   * so that fewer plans are made.
   */
  #free(forTransaction: boolean): Physical | undefined {
    const at = forTransaction ? this.#idle.findIndex((idle) => idle !== this.#all[0]) : 0;
    return at < 0 ? undefined : this.#idle.splice(at, 1)[0];
  }

  /** True if no other connection is busy, so that the statement cannot wait for a lock. */
  #isAlone(physical: Physical): boolean {
    return !this.#all.some((other) => other !== physical && other.busy && !other.wire.isUnsent);
  }

  /** True if no statement waits for a lock, or if a waiting statement waits for this connection. */
  #mayGoOn({ wire }: Physical): boolean {
    return this.#blocked.size === 0 || [...this.#blocked.values()].some(({ behind }) => behind.has(wire.pid));
  }

  /**
   * True if the statement's end may have released a lock that another statement waits for. A transaction releases its locks when it ends,
   * or at its first error, so other statements need no check.
   */
  #letsGo({ wire }: Physical, { held }: Backend, error: Error | undefined): boolean {
    if (held && !error) return false;
    return [...this.#blocked.values()].some(({ behind }) => behind.has(wire.pid));
  }

  /** Runs the first statement that was held back and may run now. */
  async #letGo(): Promise<void> {
    const next = this.#kept.findIndex(({ backend }) => backend.held && this.#mayGoOn(backend.held));
    const [kept] = next < 0 ? [] : this.#kept.splice(next, 1);
    await kept?.go();
  }

  /** Disconnects all clients and rolls back their transactions. */
  async abandon(): Promise<void> {
    for (const backend of [...this.#backends]) await this.disconnect(backend);
    await this.dies();
  }

  async close(): Promise<void> {
    await Promise.all([...this.#all.map(({ wire }) => wire.end()), this.#admin?.end()]);
  }

  #onOurTime({ text, values }: Statement): { text: string; values: unknown[] } {
    let known = this.#texts.get(text);
    if (known === undefined) {
      if (ownClock.test(text)) throw new Error(`a statement asks the server's real clock: ${text}`);
      const time = `to_timestamp($${values.length + 1}::float8)`;
      const asked = text.replaceAll(clockCall, time).replace(idleLimit, "0");
      known = { asked, asksClock: text.includes(clockCall) };
      this.#texts.set(text, known);
    }
    return { text: known.asked, values: known.asksClock ? [...values, this.wallMs() / 1_000] : values };
  }

  async #open(): Promise<Physical> {
    const { url, types, onConnection } = this.#options;
    const told = new Set<string>();
    const wire = await Wire.open(url, sessionSettings, types, (payload) => told.add(payload));
    onConnection(wire.pid);
    const physical: Physical = { wire, told, busy: true };
    this.#all.push(physical);
    return physical;
  }

  /** Returns a connection to the idle list. The list is sorted by age, because the oldest connection has the most cached plans. */
  #release(physical: Physical): void {
    physical.busy = false;
    this.#idle.push(physical);
    if (this.#idle.length > 1) this.#idle.sort((a, b) => this.#all.indexOf(a) - this.#all.indexOf(b));
  }

  /**
   * Resolves when the statement has ended or waits for locks.
   * @returns process ids of the backends for which it waits, directly or indirectly; empty if it has ended
   */
  async #unlessBlocked(physical: Physical, running: Promise<void>, ended: () => boolean): Promise<ReadonlySet<number>> {
    while (!ended()) {
      await tripwire.within(lockLookMs, running);
      if (ended()) break;
      const behind = await this.#behind(physical.wire.pid);
      if (behind.size > 0 && !ended()) return behind;
    }
    return new Set();
  }

  /** Returns the backends that the statement waits for, directly or indirectly; empty for a deadlock, which the server will break. */
  async #behind(pid: number): Promise<ReadonlySet<number>> {
    const behind = new Set<number>();
    const look = [pid];
    for (let one = look.pop(); one !== undefined; one = look.pop()) {
      const [row] = await this.#adminQuery<{ pids: number[] }>("select pg_blocking_pids($1) as pids", [one]);
      for (const blocking of row?.pids ?? []) {
        if (blocking === pid) return new Set();
        if (!behind.has(blocking)) look.push(blocking);
        behind.add(blocking);
      }
    }
    return behind;
  }

  /** Checks the statements that wait for locks, again and again until a check finds that none of them has ended. */
  async #lookAtBlocked(): Promise<void> {
    for (let again = true; again && this.#blocked.size > 0; ) {
      again = false;
      for (const { look } of [...this.#blocked.values()]) if (await look()) again = true;
    }
  }

  async #adminQuery<Row>(text: string, values: unknown[]): Promise<Row[]> {
    if (!this.#admin) {
      this.#admin = new pg.Client({ connectionString: this.#options.url, application_name: "server admin" });
      await this.#admin.connect();
    }
    return (await this.#admin.query({ text, values })).rows as Row[];
  }

  #announce(payload: string): void {
    for (const backend of this.#listeners) backend.listening?.(payload);
  }
}
