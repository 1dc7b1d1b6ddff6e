/**
 * A handler that computes without a pause runs in a thread of its own, so that the heartbeat task stays on time.
 *
 *   node examples/dist/isolated/main.js
 */
import { carillon, every } from "carillon";

const tower = carillon({ store: process.env.DATABASE_URL ?? "embedded" });

const primes = tower.task<{ below: number }>(
  "primes",
  { isolate: "thread", timeout: "1m" },
  new URL("./primes.js", import.meta.url),
);
tower.task("heartbeat", { schedule: every("1s") }, (run) => {
  console.log(`${Date.now() - run.due.getTime()} ms late`);
});

await tower.start();
await primes.enqueue({ below: 300_000 });
