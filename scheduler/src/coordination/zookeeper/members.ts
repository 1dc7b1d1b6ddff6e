import { isZooKeeperError, type Session, type ZooKeeper } from "@carillon/zookeeper";
import { type Clock, pause } from "../../base/clock.ts";

const retryMs = 250;

/**
 * The sessions that are shown, by number only. One request reads them all, however many they are; after that, events report each change
 * without a request. The data of a single member is read separately.
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
  /** Events since the current reading began; each of them may be older or newer than the reading's answer. */
  #meanwhile: Map<number, boolean> | undefined;

  /** @param listeners gone: called when a session may have gone since the last call */
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

  /** The sessions according to the last events; undefined until all of them have been read. */
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
        // The session reports its own end; the next session reads everything again.
        if (session?.live) this.#trouble(error);
        await pause(this.#clock, retryMs, signal);
      }
    }
  }

  /** Throws unless this object was closed. */
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
      // The service was wiped meanwhile: no session is shown.
    }
    // Events are applied in their order: the last event for a number is no older than the answer, or the answer says the same.
    for (const [sessionId, isThere] of this.#meanwhile) {
      if (isThere) found.add(sessionId);
      else found.delete(sessionId);
    }
    this.#meanwhile = undefined;
    this.#shown = found;
    this.#gone();
  }

  #hear(sessionId: number, isThere: boolean): void {
    if (!Number.isSafeInteger(sessionId)) return; // data of another program under our path shows no member
    this.#meanwhile?.delete(sessionId);
    this.#meanwhile?.set(sessionId, isThere);
    if (isThere) this.#shown?.add(sessionId);
    else this.#shown?.delete(sessionId);
    if (this.#shown && !isThere) this.#gone();
  }
}
