import { expect, test } from "vitest";
import { connect, type ZooKeeper } from "../../src/index.ts";
import { Ensemble } from "../../src/testing/ensemble.ts";

/** Sizes around the socket buffer of 64 KiB, and many small answers that share the buffer. */
const sizes = [0, 1, 100, 100, 100, 100, 100, 4_000, 65_400, 65_536, 65_537, 200_000];
const rounds = 100;

/** Far more requests than are needed for pauses between reads. */
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

test("a thousand answers on their way, large and small, on two connections at once: each whole, to its own call", async () => {
  await using ensemble = await Ensemble.start({ servers: 1, tls: true });
  // All are requested at one moment: a session lives on from that moment until the answers are read, however slow the machine is.
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
  // With nothing on its way there is no reason to rest.
  expect((await plain.get("/p-2")).data.toString()).toBe("p".repeat(100));
  await Promise.all([plain.close(), secure.close()]);
});
