import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect, test } from "vitest";
import type { ChainRow } from "../../access/audit-chain.ts";
import { type Clock, systemClock } from "../../base/clock.ts";
import { silentLog } from "../../base/log.ts";
import { patienceMs } from "../../executors/http/event-poster.ts";
import type { AuditPlace, EventStore } from "../../store/event-store.ts";
import { receiverOf } from "./audit-receivers.ts";
import { serveAudit } from "./audit-stream.ts";

const rowOf = (seq: number): ChainRow => ({
  seq,
  hash: "0".repeat(64),
  content: JSON.stringify({ at: seq, who: "ann", act: "edit", about: "task", named: "settle" }),
});

test("a syslog server that needs 3 s for a row gets all rows, although it takes no batch of a hundred in its time", async () => {
  /** Ends the time of the calls in progress. */
  const patience = new Set<() => void>();
  const clock: Clock = {
    ...systemClock,
    after(ms, fire) {
      if (ms === patienceMs) {
        patience.add(fire);
        return () => patience.delete(fire);
      }
      const handle = setImmediate(fire);
      return () => clearImmediate(handle);
    },
  };
  const batches: number[][] = [];
  let tooSlow = 0;
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    let text = "";
    socket.on("error", () => socket.destroy());
    socket.on("data", (bytes) => {
      text += bytes;
    });
    socket.on("end", () => {
      const seqs = [...text.matchAll(/"seq":(\d+)/g)].map(([, seq]) => Number(seq));
      if (seqs.length * 3_000 <= patienceMs) {
        batches.push(seqs);
        return socket.end();
      }
      tooSlow++;
      for (const fire of [...patience]) fire();
      return socket.destroy();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");

  const rows = Array.from({ length: 100 }, (_, at) => rowOf(at + 1));
  const places: number[] = [];
  const over = new AbortController();
  const url = `syslog+tcp://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const events = {
    async move(_name: string, _epoch: number, place: AuditPlace) {
      places.push(place.seq);
      return true;
    },
  } as unknown as EventStore;
  const audit = {
    async chained(afterSeq: number) {
      if (afterSeq === 100) over.abort();
      return rows.filter(({ seq }) => seq > afterSeq);
    },
  };
  const receiver = receiverOf({ url, audit: true }, "/carillon/test", clock);
  const of = { name: "audit/slow", events, audit, clock, now: () => 0, log: silentLog, receiver };
  await serveAudit(of, { epoch: 1, place: { seq: 0 } }, over.signal);
  expect(batches.flat()).toEqual(rows.map(({ seq }) => seq));
  expect(tooSlow).toBeGreaterThan(0);
  expect([...new Set(places)]).toEqual(batches.map((batch) => batch.at(-1)));
  await new Promise((resolve) => server.close(resolve));
});
