import { silentLog } from "../../../scheduler/src/base/log.ts";
import { Carillon } from "../../../scheduler/src/library/carillon.ts";
import { OwnProcess } from "../own-process.ts";

/** A server of the cluster under test. The harness can end it abruptly and restart it. */
export interface ServerNode {
  /** The server's URL; undefined while it is down. */
  url: string | undefined;
  /** How often the server went down. If it changed during a request, the client may have got no answer, or part of one. */
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

/** Starts a server in the current process: the harness, or a child process of it. */
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

/** A server in this process. `end` destroys its clients' connections before it stops, so that they read no further answers. */
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

/** A server in a child process, which `end` kills with SIGKILL. */
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
