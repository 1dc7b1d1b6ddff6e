import type { FastifyInstance } from "fastify";

/**
 * Makes true: a server that stops answers what it was asked, and then waits for no connection. Node itself closes those that
 * idle after a request; one that never sent any, as clients open them ahead, it would wait for a minute long.
 */
export class InFlight {
  #count = 0;
  #onNone: (() => void) | undefined;

  watch(app: FastifyInstance): void {
    app.addHook("onRequest", (_, reply, done) => {
      this.#count++;
      // Also where the caller goes first, and where the answer was written past Fastify.
      reply.raw.once("close", () => {
        this.#count--;
        if (this.#count === 0) this.#onNone?.();
      });
      done();
    });
  }

  async close(app: FastifyInstance): Promise<void> {
    const closed = app.close();
    if (this.#count > 0)
      await new Promise<void>((resolve) => {
        this.#onNone = resolve;
      });
    app.server.closeAllConnections();
    await closed;
  }
}
