import type { Socket } from "node:net";
import type { FastifyInstance } from "fastify";
import { type Clock, pause } from "../base/clock.ts";

/** When the server stops, clients get this long to read their answers, in ms. */
const lingerMs = 5_000;

/**
 * Waits for requests in progress when the server stops, at most `lingerMs`, and then closes all connections. Requests are counted per
 * socket, because Node.js emits no `close` for pipelined requests whose turn had not come when the client disconnected.
 */
export class InFlight {
  /** The number of requests per socket that have not been answered completely. */
  readonly #busy = new Map<Socket, number>();
  #onNone: (() => void) | undefined;

  watch(app: FastifyInstance): void {
    app.addHook("onRequest", ({ raw: { socket } }, reply, done) => {
      const before = this.#busy.get(socket);
      if (before === undefined) socket.once("close", () => this.#free(socket));
      this.#busy.set(socket, (before ?? 0) + 1);
      // `close` is also emitted if the client disconnects before the answer, and if the answer is sent without Fastify.
      reply.raw.once("close", () => {
        // If the socket was closed first, its count has been removed already.
        const count = this.#busy.get(socket);
        if (count !== undefined) this.#busy.set(socket, count - 1);
        this.#tell();
      });
      done();
    });
  }

  isBusy(socket: Socket): boolean {
    return (this.#busy.get(socket) ?? 0) > 0;
  }

  async close(app: FastifyInstance, clock: Clock, withinMs: number): Promise<void> {
    const closed = app.close();
    const over = new AbortController();
    await Promise.race([
      new Promise<void>((resolve) => {
        this.#onNone = resolve;
        this.#tell();
      }),
      pause(clock, Math.min(withinMs, lingerMs), over.signal),
    ]);
    over.abort();
    app.server.closeAllConnections();
    for (const socket of this.#busy.keys()) socket.destroy();
    await closed;
  }

  #free(socket: Socket): void {
    this.#busy.delete(socket);
    this.#tell();
  }

  #tell(): void {
    if (this.#onNone && [...this.#busy.values()].every((count) => count === 0)) this.#onNone();
  }
}
