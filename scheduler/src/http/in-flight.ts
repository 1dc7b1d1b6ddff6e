import type { Socket } from "node:net";
import type { FastifyInstance } from "fastify";
import { type Clock, pause } from "../base/clock.ts";

/** The time limit for responses that a client reads slowly, or not at all, once the server stops. */
const lingerMs = 5_000;

/**
 * Finishes the requests under way when the server stops, for `lingerMs` at most, and then closes every connection. Requests are counted by
 * socket, because Node emits no `close` for pipelined requests that wait behind another one when the client disconnects.
 */
export class InFlight {
  /** Requests without a whole answer, by socket. */
  readonly #busy = new Map<Socket, number>();
  #onNone: (() => void) | undefined;

  watch(app: FastifyInstance): void {
    app.addHook("onRequest", ({ raw: { socket } }, reply, done) => {
      const before = this.#busy.get(socket);
      if (before === undefined) socket.once("close", () => this.#free(socket));
      this.#busy.set(socket, (before ?? 0) + 1);
      // `close` is emitted also if the client disconnects before the answer, and if the answer bypasses Fastify.
      reply.raw.once("close", () => {
        // The socket may have closed first, which removed its count.
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
