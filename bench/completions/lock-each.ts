/**
 * Completes runs with one Redis lock per completion, as an older scheduler did. For each run the process takes the lock, and tries again
 * after a fixed pause while another process holds it. Then it reads the task's counter, writes the counter plus one, and moves the run to
 * the history.
 */
import { setTimeout as pause } from "node:timers/promises";
import { Redis } from "ioredis";
import pg from "pg";
import { answerAsSubject } from "../measure/subject.ts";
import { theInstant } from "./instant.ts";
import type { LockOrder } from "./order.ts";

const order = JSON.parse(process.argv[2] ?? "{}") as LockOrder;
const { schema } = order;
const spinMs = 10;
const expiryMs = 30_000;
const lock = `${schema}:completion`;
const redis = new Redis(order.redisUrl);
const pool = new pg.Pool({ connectionString: order.url, max: 8 });
const instant = await theInstant(order.url, schema);
const waits: number[] = [];

async function end(run: number): Promise<void> {
  await instant.come;
  const began = performance.now();
  while ((await redis.set(lock, run, "PX", expiryMs, "NX")) !== "OK") await pause(spinMs);
  waits.push(performance.now() - began);
  const client = await pool.connect();
  try {
    await client.query("begin");
    const { rows } = await client.query(`select ended from "${schema}".counter`);
    await client.query(`update "${schema}".counter set ended = $1`, [Number(rows[0]?.ended) + 1]);
    await client.query(`delete from "${schema}".live where id = $1`, [run]);
    await client.query(`insert into "${schema}".ended values ($1)`, [run]);
    await client.query("commit");
  } finally {
    client.release();
    await redis.del(lock);
  }
}

const ends: Promise<void>[] = [];
for (let run = order.from; run < order.to; run++) ends.push(end(run));
const tell = answerAsSubject(async () => {
  await Promise.all(ends);
  const longest = waits.reduce((a, b) => Math.max(a, b), 0);
  await pool.query(`insert into "${schema}".wait values ($1)`, [longest]);
  await Promise.all([pool.end(), instant.close(), redis.quit()]);
});
tell({ kind: "started" });
