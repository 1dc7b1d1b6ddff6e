import { silentLog } from "../../../scheduler/src/base/log.ts";
import { Carillon } from "../../../scheduler/src/library/carillon.ts";
import { OwnProcess } from "../own-process.ts";

/** A server of the cluster under test, which can be ended abruptly and restarted. */
export interface ServerNode {
  /** Its address; undefined while it is down. */
  url: string | undefined;
  /** Number of times that it went down: a request during which this rose may have got no answer, or half of one. */
  downs: number;
  start(): Promise<void>;
  /** Ends the server abruptly; answers that are being sent are lost. */
  end(): Promise<void>;
}

export interface ServerOptions {
  readonly store: string;
  readonly schema: string;
  readonly name: string;
}

/** Starts a server: used both in this process and in a child process. */
export async function listen({ store, schema, name }: ServerOptions): Promise<Carillon> {
  const server = new Carillon({
    store,
    schema,
    name,
    worker: false,
    listen: "127.0.0.1:0",
    handleSignals: false,
    drain: 0,
    log: silentLog,
  });
  await server.start();
  return server;
}

/** A server in this process. Its clients' connections are cut before it stops, so that they read no more answers. */
export class OwnNode implements ServerNode {
  url: string | undefined;
  downs = 0;
  readonly #options: ServerOptions;
  readonly #cut: (node: ServerNode) => void;
  #server: Carillon | undefined;
  #times = 0;

  constructor(options: ServerOptions, cut: (node: ServerNode) => void) {
    this.#options = options;
    this.#cut = cut;
  }

  async start(): Promise<void> {
    this.#server = await listen({ ...this.#options, name: `${this.#options.name}-${this.#times++}` });
    this.url = `http://${this.#server.listening}`;
  }

  async end(): Promise<void> {
    this.downs++;
    this.url = undefined;
    this.#cut(this);
    await this.#server?.stop();
  }
}

/** A server in a process of its own, which is killed with -9. */
export class ProcessNode implements ServerNode {
  url: string | undefined;
  downs = 0;
  readonly #options: ServerOptions;
  #process: OwnProcess | undefined;
  #times = 0;

  constructor(options: ServerOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    const options: ServerOptions = { ...this.#options, name: `${this.#options.name}-${this.#times++}` };
    this.#process = new OwnProcess(options.name, "--serve", options);
    const line = await this.#process.ready;
    this.url = `http://${line}`;
  }

  async end(): Promise<void> {
    this.downs++;
    this.url = undefined;
    await this.#process?.kill();
  }
}
