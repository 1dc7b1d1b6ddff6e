import { describe, expect, test } from "vitest";
import type { Connection } from "./connection.ts";
import { Questions } from "./questions.ts";
import { SessionCore } from "./session-core.ts";

const timeoutMs = 80;

/** As much of a connection as a session looks at: what the server welcomed it with, and when it answered last. */
const connection = () => ({
  welcome: { id: 7n, password: Buffer.alloc(16), timeoutMs },
  renewedAt: performance.now(),
  takeUnanswered: () => [],
  end: () => undefined,
});

/** Neither timers nor sockets are served meanwhile, as when the machine gives this process no processor. */
function stall(): void {
  const until = performance.now() + timeoutMs;
  while (performance.now() < until);
}

describe("a session that is over by the clock", () => {
  test("stays over for whoever has seen it, though an answer comes late", async () => {
    const session = new SessionCore(timeoutMs, new Questions(""), "");
    const line = connection();
    session.attach(line as unknown as Connection);
    expect(session.live).toBe(true);
    stall();
    expect(session.live).toBe(false);
    line.renewedAt = performance.now();
    expect(session.live).toBe(false);
    await Promise.resolve();
    expect(session.state).toBe("ended");
    expect(session.signal.reason).toMatchObject({ code: "SESSION_EXPIRED" });
  });

  test("is not taken up again by a connection that came too late", () => {
    const session = new SessionCore(timeoutMs, new Questions(""), "");
    session.attach(connection() as unknown as Connection);
    session.detach(new Error("lost"));
    stall();
    session.attach(connection() as unknown as Connection);
    expect(session.state).toBe("ended");
  });

  test("goes on while nobody was told that it is over", () => {
    const session = new SessionCore(timeoutMs, new Questions(""), "");
    const line = connection();
    session.attach(line as unknown as Connection);
    stall();
    line.renewedAt = performance.now();
    expect(session.live).toBe(true);
    session.detach(new Error("lost"));
  });
});
