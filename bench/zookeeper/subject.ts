/** A Node client under test, in a process of its own: executes its order and prints its `Outcome` as one line of JSON. */
import { percentile } from "../measure/figures.ts";
import { type Client, clients } from "./clients.ts";
import type { Order, Outcome } from "./order.ts";

const order = JSON.parse(process.argv[2] ?? "{}") as Order;
const client = await clients[order.client](order.url, Buffer.alloc(order.bytes, "x"));

await flood(client, 0, order.warmUp, []);
const tookMs: number[] = [];
const cpu = process.cpuUsage();
const began = performance.now();
await flood(client, order.warmUp, order.count, order.window === 1 ? tookMs : undefined);
const seconds = (performance.now() - began) / 1_000;
const { user, system } = process.cpuUsage(cpu);
await client.close();

const outcome: Outcome = { perSecond: order.count / seconds, cpuUsPerOperation: (user + system) / order.count };
if (tookMs.length > 0) {
  tookMs.sort((a, b) => a - b);
  Object.assign(outcome, { p50Us: percentile(tookMs, 0.5) * 1_000, p99Us: percentile(tookMs, 0.99) * 1_000 });
}
// Exit explicitly, because the native client's threads and handle would keep the process alive.
process.stdout.write(`${JSON.stringify(outcome)}\n`, () => process.exit());

/** @param took receives the duration of each operation, in ms; only with a window of 1 */
function flood(client: Client, first: number, count: number, took: number[] | undefined): Promise<void> {
  const { path, operation, window } = order;
  return new Promise((resolve, reject) => {
    let sent = 0;
    let answered = 0;
    let sentAt = 0;
    const done = (problem: unknown) => {
      if (problem !== undefined) return reject(problem);
      if (took) took.push(performance.now() - sentAt);
      answered++;
      if (sent < count) send();
      else if (answered === count) resolve();
    };
    const send = () => {
      if (took) sentAt = performance.now();
      client[operation](`${path}/${first + sent++}`, done);
    };
    if (count === 0) resolve();
    while (sent < Math.min(count, window)) send();
  });
}
