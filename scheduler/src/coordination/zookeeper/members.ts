import { isZooKeeperError, type Session, type ZooKeeper } from "@carillon/zookeeper";
import { type Clock, pause } from "../../base/clock.ts";

const retryMs = 250;

/**
 * The numbers of the listed sessions. The list is read at the beginning of a ZooKeeper session and after a gap in the events;
 * otherwise events report each change without a request. The data of a single member is read separately.
 */
export class ZooKeeperMembers {
  readonly #zk: ZooKeeper;
  readonly #path: string;
  readonly #clock: Clock;
  readonly #gone: () => void;
  readonly #trouble: (error: unknown) => void;
  readonly #closing = new AbortController();
  readonly #running: Promise<void>;
  #shown: Set<number> | undefined;
  /** Events received while the list is being read. Each may be older or newer than the answer. */
  #meanwhile: Map<number, boolean> | undefined;

  /** @param listeners gone: called when a session may have disappeared since the last call; trouble: called with errors */
  constructor(
    zk: ZooKeeper,
    path: string,
    clock: Clock,
    { gone, trouble }: { gone: () => void; trouble: (error: unknown) => void },
  ) {
    this.#zk = zk;
    this.#path = path;
    this.#clock = clock;
    this.#gone = gone;
    this.#trouble = trouble;
    this.#running = this.#run();
  }

  /** The listed sessions, by the events received so far; undefined until the list has been read. */
  get shown(): ReadonlySet<number> | undefined {
    return this.#shown;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      let session: Session | undefined;
      try {
        session = await this.#zk.established(signal);
        await this.#follow(session);
      } catch (error) {
        if (signal.aborted || this.#zk.signal.aborted) return;
        // The end of the ZooKeeper session is reported elsewhere; the next session reads the whole list again.
        if (session?.live) this.#trouble(error);
        await pause(this.#clock, retryMs, signal);
      }
    }
  }

  /** Reads the list and applies events. Throws if that fails or the session ends; returns only once this object was closed. */
  async #follow(session: Session): Promise<void> {
    const turn = new AbortController();
    const signal = AbortSignal.any([this.#closing.signal, turn.signal]);
    const watch = await session.watch(this.#path, { recursive: true, signal });
    let failure: unknown;
    const read = () =>
      this.#read(session).catch((error: unknown) => {
        failure = error;
        turn.abort();
      });
    let reading = read();
    try {
      for await (const { type, path } of watch) {
        if (type === "gap") reading = reading.then(read);
        else if (type !== "changed") this.#hear(Number(path.slice(this.#path.length + 1)), type === "created");
      }
    } finally {
      await watch.close();
    }
    if (failure !== undefined) throw failure;
  }

  async #read(session: Session): Promise<void> {
    const found = new Set<number>();
    this.#meanwhile = new Map();
    try {
      await session.eachChild(this.#path, (name) => void found.add(Number(name)));
    } catch (error) {
      if (!isZooKeeperError(error, "NO_NODE")) throw error;
      // ZooKeeper has been wiped, so no session is listed.
    }
    // The last event about a session during the read overrides the list: it is at least as recent as the list, or agrees with it.
    for (const [sessionId, isThere] of this.#meanwhile) {
      if (isThere) found.add(sessionId);
      else found.delete(sessionId);
    }
    this.#meanwhile = undefined;
    this.#shown = found;
    this.#gone();
  }

  #hear(sessionId: number, isThere: boolean): void {
    if (!Number.isSafeInteger(sessionId)) return; // a node that another program created
    this.#meanwhile?.delete(sessionId);
    this.#meanwhile?.set(sessionId, isThere);
    if (isThere) this.#shown?.add(sessionId);
    else this.#shown?.delete(sessionId);
    if (this.#shown && !isThere) this.#gone();
  }
}
