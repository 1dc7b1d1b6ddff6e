import { connect } from "node:net";
import { expect, test } from "vitest";
import { carillon } from "../../src/library/carillon.ts";
import { postgres } from "../support/servers.ts";
import { floodSignIn } from "../support/sign-in-flood.ts";
import { openStage, until } from "../support/store-stage.ts";

test("10,000 concurrent sign-ins are refused, few of them by computing a hash, while slots still fire", async () => {
  let fired = 0;
  const stage = await openStage(postgres());
  const { schema } = stage;
  const tower = carillon({ store: postgres().url, schema, listen: "127.0.0.1:0", handleSignals: false });
  tower.task("beat", { schedule: { type: "every", everyMs: 250, mode: "rate" } }, () => {
    fired += 1;
  });
  try {
    await tower.start();
    await until("it beats", () => fired > 2);
    const before = fired;
    const statuses = await guesses(String(tower.listening), 20, 500);
    expect(fired, "slots that fired under the flood").toBeGreaterThan(before);
    expect([...statuses.keys()].sort()).toEqual([401, 429]);
    expect(statuses.get(401)).toBeLessThan(40);
  } finally {
    await tower.stop();
    await stage.close();
  }
});

test("a user can sign in and change the password during 200 wrong guesses per second from 10,000 addresses", async () => {
  const { before, tries, statuses } = await floodSignIn();
  expect(before.status).toBe(200);
  for (const [what, { status }] of Object.entries(tries)) expect([200, 204], what).toContain(status);
  expect(statuses.get(200)).toBeUndefined();
});

/** The most requests on one connection that a client has sent and the server has not answered yet. */
const onTheirWay = 20;

/**
 * Sends sign-ins with wrong names and passwords: `each` on every one of `lines` connections, pipelined. Resolves with the number of
 * responses by HTTP status.
 */
async function guesses(address: string, lines: number, each: number): Promise<Map<number, number>> {
  const [host, port] = address.split(":");
  const statuses = new Map<number, number>();
  const line = (of: number) =>
    new Promise<void>((resolve, reject) => {
      const socket = connect({ host: host as string, port: Number(port) });
      let left = each;
      let heard = "";
      socket.on("data", (data) => {
        heard += data.toString("latin1");
        const found = [...heard.matchAll(/HTTP\/1\.1 (\d{3}) /g)];
        // Keeps the end of the text, because a status line may be split between two chunks.
        heard = heard.slice(-12);
        if (/HTTP\/1\.1 \d{3} /.test(heard)) heard = "";
        for (const [, status] of found) statuses.set(Number(status), (statuses.get(Number(status)) ?? 0) + 1);
        left -= found.length;
        if (left === 0) socket.end(resolve);
        else send(found.length);
      });
      socket.once("error", reject);
      socket.once("close", () => reject(new Error(`the server closed line ${of}, which waits for ${left} answers`)));
      let sent = 0;
      const send = (more: number) => {
        for (const end = Math.min(each, sent + more); sent < end; sent++) {
          const name = sent % 2 ? "admin" : `user-${of}-${sent}`;
          const body = JSON.stringify({ name, password: `guess number ${sent}` });
          const head = `POST /v1/sign-in HTTP/1.1\r\nhost: ${address}\r\ncontent-type: application/json`;
          socket.write(`${head}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
        }
      };
      send(onTheirWay);
    });
  await Promise.all(Array.from({ length: lines }, (_, of) => line(of)));
  return statuses;
}
