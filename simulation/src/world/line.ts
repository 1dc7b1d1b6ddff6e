import { EventEmitter } from "node:events";
import type pg from "pg";
import type { Driver } from "../../../scheduler/src/store/postgres/database.ts";
import type { Machine } from "./machine.ts";
import type { Network } from "./network.ts";
import type { Answer, Backend, Server, Statement } from "./server.ts";

type Query = string | { name?: string; text: string; values?: unknown[] };

const broken = (text: string, code: string) => Object.assign(new Error(text), { code });
const reset = () => broken("read ECONNRESET", "ECONNRESET");

/** The longest time in ms until the server notices that a client has vanished and rolls back its transaction. */
const unnoticedMs = 20_000;

/** Whether the server accepts connections, and the clients whose connections break when it dies. */
export class Doors {
  open = true;
  readonly clients = new Set<LineClient>();
  made = 0;

  /** Lets the server die, as by `pg_ctl stop -m immediate`: all connections break, and committed data stays. */
  shut(): void {
    this.open = false;
    for (const client of [...this.clients]) client.breaks(broken("terminating connection", "57P01"));
  }
}

export interface LineOptions {
  readonly machine: Machine;
  readonly network: Network;
  readonly server: Server;
  readonly doors: Doors;
  /** Adds a line to the trace: a query and its result. */
  readonly note: (line: string) => void;
}

/** Replaces pg's pool and client for one machine: the same calls and events, over the simulated network. */
export function lineDriver(options: LineOptions): Driver {
  return {
    pool: (config) => new LinePool(options, config) as unknown as pg.Pool,
    client: (config) => new LineClient(options, config.connectionTimeoutMillis ?? 0) as unknown as pg.Client,
  };
}

class LineClient extends EventEmitter {
  readonly #options: LineOptions;
  readonly #backend: Backend;
  readonly #connectMs: number;
  readonly #line: string;
  #state: "new" | "open" | "ended" = "new";
  #waiting: { reject: (error: Error) => void } | undefined;
  #queue: Promise<unknown> = Promise.resolve();
  #bytes = 0;
  readonly connection = {
    stream: Object.defineProperties({} as { bytesRead: number; pause(): void; destroy(): void }, {
      bytesRead: { get: () => this.#bytes },
      // The scheduler pauses pg's stream before it sends a cancel request. Here it sends no such request, because it destroys the
      // stream at once.
      pause: { value: () => undefined },
      destroy: { value: () => this.breaks(broken("Connection terminated", "")) },
    }),
  };
  /** Set by the pool: returns this client to the pool. */
  release: (error?: unknown) => void = () => undefined;

  constructor(options: LineOptions, connectMs: number) {
    super();
    this.setMaxListeners(0);
    this.#options = options;
    this.#connectMs = connectMs;
    this.#line = `${options.machine.name} store`;
    this.#backend = options.server.connect(`${options.machine.name}#${options.doors.made++}`);
  }

  isOf(machine: Machine): boolean {
    return this.#options.machine === machine;
  }

  get ended(): boolean {
    return this.#state === "ended";
  }

  connect(): Promise<void> {
    const { machine, network, doors } = this.#options;
    return new Promise((resolve, reject) => {
      const cancel = machine.after(this.#connectMs, () => {
        if (this.#state !== "new") return;
        this.#state = "ended";
        reject(new Error("timeout expired"));
      });
      const settle = (error: Error | undefined) => {
        if (this.#state !== "new") return;
        cancel();
        this.#state = error ? "ended" : "open";
        if (error) return reject(error);
        doors.clients.add(this);
        resolve();
      };
      network.send(this.#line, "to", network.latency(), () => {
        const isOpen = doors.open;
        network.send(this.#line, "from", network.latency(), () =>
          machine.deliver(() => settle(isOpen ? undefined : broken("connect ECONNREFUSED", "ECONNREFUSED"))),
        );
      });
    });
  }

  /** Sends a query. The queries of a client run one after the other, as in pg. */
  query(query: Query, values?: unknown[]): Promise<{ rows: Record<string, unknown>[]; rowCount: number }> {
    const statement: Statement =
      typeof query === "string"
        ? { name: "", text: query, values: values ?? [] }
        : { name: query.name ?? "", text: query.text, values: query.values ?? values ?? [] };
    const asked = this.#queue.then(() => this.#ask(statement));
    this.#queue = asked.catch(() => undefined); // the caller gets the error
    return asked;
  }

  #ask(statement: Statement): Promise<{ rows: Record<string, unknown>[]; rowCount: number }> {
    const { machine, network, server, note } = this.#options;
    return new Promise((resolve, reject) => {
      if (this.#state !== "open") {
        return reject(broken("Client has encountered a connection error and is not queryable", ""));
      }
      const { replyLost, requestLost, slotsLate } = network.weather;
      const isLostBefore = network.chance(requestLost);
      const isLostAfter = network.chance(replyLost);
      this.#waiting = { reject };
      const what = nameOf(statement);
      const answered = (answer: Answer) => {
        note(`${this.#backend.who} ${what} ${answer.error ? answer.error.message : answer.rowCount}`);
        if (this.#state === "ended") return;
        network.send(this.#line, "from", network.latency(), () =>
          machine.deliver(() => {
            if (this.#state === "ended") return;
            if (isLostAfter) return this.breaks(reset());
            this.#bytes += 1;
            this.#waiting = undefined;
            if (answer.error) reject(answer.error);
            else resolve({ rows: answer.rows, rowCount: answer.rowCount });
          }),
        );
      };
      const isLate = slotsLate > 0 && slotsText.test(statement.text) && network.chance(slotsLate);
      const lateMs = isLate ? network.between(0, slotsLateMostMs) : 0;
      network.send(this.#line, "to", network.latency() + lateMs, () => {
        // If the client has ended, its messages that have not arrived yet are lost.
        if (this.#state === "ended") return;
        if (isLostBefore) return machine.deliver(() => this.breaks(reset()));
        if (/^listen\b/.test(statement.text)) this.#listen();
        return server.execute(this.#backend, statement, answered);
      });
    });
  }

  #listen(): void {
    const { machine, network, note } = this.#options;
    this.#backend.listening = (payload) => {
      const { signalLost, signalDoubled, signalLate } = network.weather;
      if (network.chance(signalLost)) return note(`${this.#backend.who} lost: ${payload}`);
      const copies = network.chance(signalDoubled) ? 2 : 1;
      for (let i = 0; i < copies; i++) {
        const lateMs = network.chance(signalLate) ? network.between(0, 3_000) : 0;
        network.send(this.#line, "from", network.latency() + lateMs, () =>
          machine.deliver(() => {
            if (this.#state !== "open") return;
            this.#bytes += 1;
            this.emit("notification", { channel: "", payload, processId: 0 });
          }),
        );
      }
    };
  }

  /**
   * Breaks the connection. The server notices the loss after the network's latency, on a cut line only after some seconds, and at
   * once if it accepts no connections.
   */
  breaks(error: Error): void {
    if (this.#state === "ended") return;
    this.#state = "ended";
    const { network, doors, server, machine } = this.#options;
    doors.clients.delete(this);
    const learns = () => server.disconnect(this.#backend);
    if (!doors.open) network.universe.after(0, learns);
    else {
      const isCut = network.isCut(this.#line, "to");
      network.universe.after(isCut ? network.between(1_000, unnoticedMs) : network.latency(), learns);
    }
    const waiting = this.#waiting;
    this.#waiting = undefined;
    machine.deliver(() => {
      waiting?.reject(error);
      if (this.listenerCount("error") > 0) this.emit("error", error);
      this.emit("end");
    });
  }

  async end(): Promise<void> {
    if (this.#state === "ended") return;
    this.#state = "ended";
    const { network, doors, server } = this.#options;
    doors.clients.delete(this);
    network.universe.after(network.latency(), () => server.disconnect(this.#backend));
    this.emit("end");
  }
}

class LinePool extends EventEmitter {
  readonly #options: LineOptions;
  readonly #config: pg.PoolConfig;
  readonly #idle: LineClient[] = [];
  readonly #queue: { take: (client: LineClient) => void; refuse: (error: Error) => void; cancel: () => void }[] = [];
  #size = 0;
  #ended = false;

  constructor(options: LineOptions, config: pg.PoolConfig) {
    super();
    this.#options = options;
    this.#config = config;
  }

  async query(query: Query): Promise<{ rows: Record<string, unknown>[]; rowCount: number }> {
    const client = await this.connect();
    try {
      const answer = await client.query(query);
      client.release();
      return answer;
    } catch (error) {
      client.release(error); // pg's pool also discards the client after any error
      throw error;
    }
  }

  connect(): Promise<LineClient> {
    if (this.#ended) return Promise.reject(new Error("Cannot use a pool after calling end on the pool"));
    for (let idle = this.#idle.pop(); idle; idle = this.#idle.pop()) if (!idle.ended) return Promise.resolve(idle);
    const timeoutMs = this.#config.connectionTimeoutMillis ?? 0;
    if (this.#size < (this.#config.max ?? 10)) return this.#make(timeoutMs);
    return new Promise((resolve, reject) => {
      const waiting = {
        take: resolve,
        refuse: reject,
        cancel: this.#options.machine.after(timeoutMs, () => {
          this.#queue.splice(this.#queue.indexOf(waiting), 1);
          reject(new Error("timeout exceeded when trying to connect"));
        }),
      };
      this.#queue.push(waiting);
    });
  }

  async end(): Promise<void> {
    this.#ended = true;
    await Promise.all(this.#idle.splice(0).map((client) => client.end()));
  }

  async #make(timeoutMs: number): Promise<LineClient> {
    this.#size++;
    const client = new LineClient(this.#options, timeoutMs);
    try {
      await client.connect();
      await this.#config.onConnect?.(client as unknown as pg.ClientBase);
    } catch (error) {
      this.#size--;
      void client.end();
      throw error;
    }
    client.once("end", () => {
      this.#size--;
      const at = this.#idle.indexOf(client);
      if (at >= 0) this.#idle.splice(at, 1);
      this.#next();
    });
    client.on("error", (error) => {
      if (this.#idle.includes(client) && this.listenerCount("error") > 0) this.emit("error", error);
    });
    client.release = (error) => {
      if (error && !client.ended) void client.end();
      else if (!client.ended) this.#give(client);
    };
    this.emit("connect", client);
    return client;
  }

  #give(client: LineClient): void {
    const waiting = this.#queue.shift();
    if (waiting) {
      waiting.cancel();
      waiting.take(client);
    } else if (this.#ended) void client.end();
    else this.#idle.push(client);
  }

  /** Opens a new connection for the caller that has waited longest. */
  #next(): void {
    const waiting = this.#queue.shift();
    if (!waiting) return;
    waiting.cancel();
    this.#make(this.#config.connectionTimeoutMillis ?? 0).then(waiting.take, waiting.refuse);
  }
}

const known = new Map<string, string>();

const slotsText = /insert into \S+\.slot \(task_id, slot_ms, outcome, run_id/;
const slotsLateMostMs = 2_500;

/** Matches the schema's name. It is removed from traces, because processes use different schemas, and a seed's trace must be the same. */
const schemaName = /"simulation_\w+"\.|simulation_\w+/g;

/** Returns a readable name of a statement for the trace: its own name, or its first words. */
function nameOf({ name, text }: Statement): string {
  if (name !== "") return name;
  let words = known.get(text);
  if (words === undefined) {
    words = text.trim().replace(schemaName, "").replace(/\s+/g, " ").slice(0, 40);
    known.set(text, words);
  }
  return words;
}
