import pg from "pg";
import { tripwire } from "./tripwire.ts";
import { Universe } from "./universe.ts";

export interface Statement {
  readonly name: string;
  readonly text: string;
  readonly values: unknown[];
}

export interface Answer {
  readonly rows: Record<string, unknown>[];
  readonly rowCount: number;
  readonly error: Error | undefined;
}

/** What the server knows of one simulated connection. */
export interface Backend {
  readonly who: string;
  /** The real connection that has its open transaction. */
  held: Physical | undefined;
  /** Its last statement waits for somebody's lock. */
  blocked: Promise<void> | undefined;
  listening: ((payload: string) => void) | undefined;
}

interface Physical {
  readonly client: pg.Client;
  readonly pid: number;
  readonly heard: string[];
  busy: boolean;
}

export interface ServerOptions {
  readonly url: string;
  readonly channel: string;
  readonly types: pg.CustomTypesConfig;
}

type Watch = (who: string, statement: Statement, rows: Record<string, unknown>[], storeMs: number) => void;

/** Longer than the server takes to find a deadlock (see `sessionSettings`). */
const lockLookMs = 4;
const sessionSettings =
  "-c synchronous_commit=off -c jit=off -c plan_cache_mode=force_generic_plan -c deadlock_timeout=1ms -c timezone=UTC";
const clockCall = "clock_timestamp()";
const ownClock = /\b(?:now\(\)|current_timestamp|localtimestamp|transaction_timestamp\(\)|statement_timestamp\(\))/i;

/**
 * A real PostgreSQL behind the simulated network. Statements run one at a time, in the order in which they arrive, and
 * the universe's time stands still meanwhile. Statements outside of a transaction share one connection, so that each is
 * planned once; each open transaction has a connection of its own, so that transactions interleave as they do in life.
 * A statement that waits for a lock is left waiting, and others go on, until whoever has the lock lets go.
 *
 * NOTIFY is heard on the connection that notifies, before its answer: in no other way would its moment be certain.
 */
export class Server {
  readonly #options: ServerOptions;
  readonly #idle: Physical[] = [];
  readonly #all: Physical[] = [];
  readonly #listeners = new Set<Backend>();
  readonly #backends = new Set<Backend>();
  #watch: Watch = () => undefined;
  readonly #blocked = new Map<Physical, { backend: Backend; look: () => Promise<boolean> }>();
  readonly #asksClock = new Map<string, boolean>();
  #admin: pg.Client | undefined;
  #universe = new Universe();
  #wallAheadMs = 0;
  statements = 0;
  /** Statements that had to wait for a lock. */
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

  /** A new seed begins. The real connections stay, for what they have planned. @param wallMs what its clock shows */
  begin(universe: Universe, wallMs: number, watch: Watch): void {
    this.#watch = watch;
    this.#universe = universe;
    this.#wallAheadMs = wallMs - universe.nowMs;
    this.#listeners.clear();
  }

  connect(who: string): Backend {
    const backend = { who, held: undefined, blocked: undefined, listening: undefined };
    this.#backends.add(backend);
    return backend;
  }

  /** The connection is over: what was open is rolled back. */
  async disconnect(backend: Backend): Promise<void> {
    this.#listeners.delete(backend);
    this.#backends.delete(backend);
    if (backend.blocked) {
      // Its process is gone while it waits: PostgreSQL would notice when it wants to answer.
      const { held } = backend;
      if (held) await this.#adminQuery("select pg_cancel_backend($1)", [held.pid]);
      await backend.blocked;
    }
    if (backend.held) await this.execute(backend, { name: "", text: "rollback", values: [] }, () => undefined);
  }

  /**
   * Runs one statement. Resolves when it has ended, or waits for a lock.
   * @param answered called when it has ended
   */
  async execute(backend: Backend, given: Statement, answered: (answer: Answer) => void): Promise<void> {
    this.statements++;
    const { name, text, values } = this.#onOurTime(given);
    const word = text.trimStart().slice(0, 8).toLowerCase();
    const physical = backend.held ?? (await this.#take());
    if (word.startsWith("begin")) backend.held = physical;
    if (word.startsWith("listen")) {
      // Heard by `#announce`; the real connection listens to its own all the time.
      backend.listening ??= () => undefined;
      this.#listeners.add(backend);
      this.#release(physical);
      answered({ rows: [], rowCount: 0, error: undefined });
      return;
    }
    let answer: Answer | undefined;
    const running = this.#run(physical, { name, text, values }).then((given) => {
      answer = given;
    });
    const finish = async () => {
      const ended = answer as Answer;
      this.#blocked.delete(physical);
      backend.blocked = undefined;
      // A commit of a transaction that failed is a rollback; either way it is over.
      if (!backend.held || word.startsWith("commit") || word.startsWith("rollback")) {
        backend.held = undefined;
        this.#release(physical);
      }
      if (!ended.error) this.#watch(backend.who, given, ended.rows, this.wallMs());
      for (const payload of physical.heard.splice(0)) this.#announce(payload);
      answered(ended);
    };
    await this.#unlessBlocked(physical, running, () => answer !== undefined);
    if (answer === undefined) {
      this.waited++;
      backend.blocked = running.then(() => undefined);
      this.#blocked.set(physical, {
        backend,
        look: async () => {
          await this.#unlessBlocked(physical, running, () => answer !== undefined);
          if (answer === undefined) return false;
          await finish();
          return true;
        },
      });
      return;
    }
    await finish();
    await this.#lookAtBlocked();
  }

  /** Every connection ends. */
  async abandon(): Promise<void> {
    for (const backend of [...this.#backends]) await this.disconnect(backend);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#all.map(({ client }) => client.end()), this.#admin?.end()]);
  }

  #onOurTime({ name, text, values }: Statement): Statement {
    let asksClock = this.#asksClock.get(text);
    if (asksClock === undefined) {
      if (ownClock.test(text)) throw new Error(`a statement asks the server's real clock: ${text}`);
      asksClock = text.includes(clockCall);
      this.#asksClock.set(text, asksClock);
    }
    if (!asksClock) return { name, text, values };
    const time = `to_timestamp($${values.length + 1}::float8)`;
    return { name, text: text.replaceAll(clockCall, time), values: [...values, this.wallMs() / 1_000] };
  }

  async #take(): Promise<Physical> {
    const idle = this.#idle.shift();
    if (idle) {
      idle.busy = true;
      return idle;
    }
    const { url, channel, types } = this.#options;
    const client = new pg.Client({
      connectionString: url,
      types,
      options: sessionSettings,
      application_name: "server",
    });
    await client.connect();
    const { rows } = await client.query("select pg_backend_pid() as pid");
    const physical: Physical = { client, pid: rows[0].pid as number, heard: [], busy: true };
    client.on("notification", ({ processId, payload }) => {
      if (processId === physical.pid) physical.heard.push(payload ?? "");
    });
    await client.query(`listen ${channel}`);
    this.#all.push(physical);
    return physical;
  }

  /** The first of all comes first again: it has planned the most. */
  #release(physical: Physical): void {
    physical.busy = false;
    this.#idle.push(physical);
    this.#idle.sort((a, b) => this.#all.indexOf(a) - this.#all.indexOf(b));
  }

  async #run(physical: Physical, { name, text, values }: Statement): Promise<Answer> {
    try {
      const { rows, rowCount } = await physical.client.query(name ? { name, text, values } : { text, values });
      return { rows: rows as Record<string, unknown>[], rowCount: rowCount ?? 0, error: undefined };
    } catch (error) {
      return { rows: [], rowCount: 0, error: error as Error };
    }
  }

  /** Resolves when it has ended, or is known to wait for a lock that an open transaction has. */
  async #unlessBlocked(physical: Physical, running: Promise<void>, ended: () => boolean): Promise<void> {
    // Nobody to wait for.
    if (!this.#all.some((other) => other !== physical && other.busy)) return running;
    for (;;) {
      await Promise.race([running, tripwire.moment(lockLookMs)]);
      if (ended()) return;
      if ((await this.#waits(physical.pid)) && !ended()) return;
    }
  }

  /** For a lock; false as well in a circle, which the server is about to break. */
  async #waits(pid: number): Promise<boolean> {
    const behind = new Set<number>();
    const look = [pid];
    for (let one = look.pop(); one !== undefined; one = look.pop()) {
      const [row] = await this.#adminQuery<{ pids: number[] }>("select pg_blocking_pids($1) as pids", [one]);
      for (const blocking of row?.pids ?? []) {
        if (blocking === pid) return false;
        if (!behind.has(blocking)) look.push(blocking);
        behind.add(blocking);
      }
    }
    return behind.size > 0;
  }

  /** What waited for a lock may have it now. */
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
