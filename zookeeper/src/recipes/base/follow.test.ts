import { describe, expect, it } from "vitest";
import { ZooKeeperError } from "../../base/errors.ts";
import type { Session, ZooKeeper } from "../../operations/session.ts";
import { backOffMs, follow, isPassing } from "./follow.ts";

/** A fake client that has one session after another, with only the members that `follow` uses. */
class Client {
  readonly closing = new AbortController();
  readonly signal = this.closing.signal;
  sessions = 0;
  current: { id: bigint; live: boolean } = this.next();

  next(): { id: bigint; live: boolean } {
    this.current = { id: BigInt(++this.sessions), live: true };
    return this.current;
  }

  async established(signal?: AbortSignal) {
    if (this.signal.aborted) throw new ZooKeeperError("CLOSED", "closed");
    if (signal?.aborted) throw new ZooKeeperError("ABORTED", "aborted");
    return this.current as unknown as Session;
  }

  get zk(): ZooKeeper {
    return this as unknown as ZooKeeper;
  }
}

const neverAborts = new AbortController().signal;
const noTrouble = (error: unknown) => {
  throw error;
};

describe("following sessions", () => {
  it("serves one session after the other until it is done; a session's end is not reported as trouble", async () => {
    const client = new Client();
    const served: bigint[] = [];
    await follow(
      client.zk,
      neverAborts,
      async (session) => {
        served.push(session.id);
        if (served.length === 3) return "done";
        client.current.live = false;
        client.next();
        throw new ZooKeeperError("SESSION_EXPIRED", "ended");
      },
      noTrouble,
    );
    expect(served).toEqual([1n, 2n, 3n]);
  });

  it("lets timers run while the client has not yet noticed the end of its session", async () => {
    const client = new Client();
    let served = 0;
    const noticed = setTimeout(() => client.next(), 1);
    client.current.live = false;
    await follow(
      client.zk,
      neverAborts,
      async (session) => {
        served++;
        if (session.live) return "done";
        throw new ZooKeeperError("SESSION_EXPIRED", "ended");
      },
      noTrouble,
    );
    clearTimeout(noticed);
    expect(served).toBeGreaterThan(1);
  });

  it("reports trouble and retries, or ends with the error that the listener throws", async () => {
    const client = new Client();
    const told: unknown[] = [];
    let served = 0;
    const serve = async () => {
      if (++served < 3) throw new ZooKeeperError("CONNECTION_LOSS", "lost");
      throw new ZooKeeperError("NO_AUTH", "refused");
    };
    const ended = follow(client.zk, neverAborts, serve, (error) => {
      told.push(error);
      if (!isPassing(error)) throw error;
    });
    await expect(ended).rejects.toMatchObject({ code: "NO_AUTH" });
    expect(told).toMatchObject([{ code: "CONNECTION_LOSS" }, { code: "CONNECTION_LOSS" }, { code: "NO_AUTH" }]);
  });

  it("ends by its abort signal without an error, also during the pause before a retry", async () => {
    const client = new Client();
    const control = new AbortController();
    await follow(
      client.zk,
      control.signal,
      async () => {
        throw new ZooKeeperError("CONNECTION_LOSS", "lost");
      },
      () => control.abort(),
    );
    await follow(client.zk, control.signal, async () => "again", noTrouble);
  });

  it("ends with the client", async () => {
    const client = new Client();
    const ended = follow(
      client.zk,
      neverAborts,
      async () => {
        client.closing.abort();
        return "again";
      },
      noTrouble,
    );
    await expect(ended).rejects.toMatchObject({ code: "CLOSED" });
  });
});

describe("back-off", () => {
  it("doubles up to a bound, with random jitter", () => {
    expect(backOffMs(0, 0)).toBe(10);
    expect(backOffMs(0, 1)).toBe(20);
    expect(backOffMs(3, 1)).toBe(160);
    expect(backOffMs(1_000, 0)).toBe(1_000);
    expect(backOffMs(1_000, 1)).toBe(2_000);
  });

  it("is only for temporary errors", () => {
    expect(isPassing(new ZooKeeperError("CONNECTION_LOSS", "x"))).toBe(true);
    expect(isPassing(new ZooKeeperError("NO_AUTH", "x"))).toBe(false);
    expect(isPassing(new Error("x"))).toBe(false);
  });
});
