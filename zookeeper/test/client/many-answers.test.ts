import { expect, test } from "vitest";
import { connect, type ZooKeeper } from "../../src/index.ts";
import { Ensemble } from "../../src/testing/ensemble.ts";

/** Sizes in bytes: some are around the 64 KiB of the read buffer, and some so small that many answers share the buffer. */
const sizes = [0, 1, 100, 100, 100, 100, 100, 4_000, 65_400, 65_536, 65_537, 200_000];
const rounds = 100;

/** Sends so many requests at once that the client pauses between reads, and checks the answers. */
async function readAll(zk: ZooKeeper, letter: string): Promise<void> {
  const read = await Promise.all(
    Array.from({ length: rounds * sizes.length }, async (_, i) => {
      const at = i % sizes.length;
      const { data, stat } = await zk.get(`/${letter}-${at}`);
      return data.length === stat.dataLength && data.equals(Buffer.alloc(sizes[at] ?? -1, letter));
    }),
  );
  expect(read).toEqual(read.map(() => true));
}

test("a thousand concurrent answers of any size on two connections arrive whole, each for its own call", async () => {
  await using ensemble = await Ensemble.start({ servers: 1, tls: true });
  // All requests are sent at once, and the session is not renewed until the answers are read, so a slow machine needs a long timeout.
  const sessionTimeoutMs = 60_000;
  const plain = await connect(ensemble.connectString(), { sessionTimeoutMs });
  const secure = await connect(ensemble.secureConnectString(), { sessionTimeoutMs, tls: ensemble.tls ?? {} });
  await Promise.all(
    sizes.flatMap((bytes, at) =>
      Object.entries({ p: plain, s: secure }).map(([letter, zk]) =>
        zk.create(`/${letter}-${at}`, letter.repeat(bytes)),
      ),
    ),
  );
  await Promise.all([readAll(plain, "p"), readAll(secure, "s")]);
  // Now only one request is unanswered, so the client does not pause before reading.
  expect((await plain.get("/p-2")).data.toString()).toBe("p".repeat(100));
  await Promise.all([plain.close(), secure.close()]);
});
