import type pg from "pg";

/** How much had been heard on each open connection at some moment. */
export type Heard = ReadonlyMap<pg.ClientBase, number>;

/**
 * The connections that are open. A network that swallows packets ends none of them for a quarter of an hour, and holds
 * up whatever waits for an answer on one: so whoever learns of the silence cuts those on which nothing is heard.
 */
export class Connections {
  readonly #open = new Set<pg.ClientBase>();

  /** Open from now until it ends. */
  watch(client: pg.ClientBase): void {
    this.#open.add(client);
    client.once("end", () => this.#open.delete(client));
  }

  mark(): Heard {
    return new Map([...this.#open].map((client) => [client, streamOf(client).bytesRead]));
  }

  /**
   * Cuts those on which nothing was heard since, the idle ones too, whose next question would find the same silence.
   * What is asked on them fails as on any connection that breaks.
   */
  cut(since: Heard): void {
    for (const [client, bytes] of since)
      if (this.#open.has(client) && streamOf(client).bytesRead === bytes) destroy(client);
  }
}

/** pg's own `end` says goodbye first, and waits for the other side. */
export function destroy(client: pg.ClientBase): void {
  streamOf(client).destroy();
}

function streamOf(client: pg.ClientBase): { bytesRead: number; destroy(): void } {
  return (client as unknown as { connection: { stream: { bytesRead: number; destroy(): void } } }).connection.stream;
}
