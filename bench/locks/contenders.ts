/** Several contenders for one lock in one process. On `go`, each repeatedly acquires the lock, holds it for 1 ms and releases it. */
import { setTimeout as pause } from "node:timers/promises";
import type { Contended, Order, Party } from "./order.ts";
import { parties } from "./parties.ts";

const order = JSON.parse(process.argv[2] ?? "{}") as Order;
const holdMs = 1;
const party = await parties[order.party]?.(order);
if (!party) throw new Error(`there is no way to lock called ${order.party}`);

async function contend(party: Party): Promise<Contended> {
  const acquired = Array.from({ length: order.contenders }, () => 0);
  const waitMs: number[] = [];
  const heldNs: bigint[] = [];
  const { userCPUTime: user, systemCPUTime: system } = process.resourceUsage();
  const until = performance.now() + order.forMs;
  const one = async (contender: number) => {
    while (performance.now() < until) {
      const began = performance.now();
      const release = await party.acquire(contender);
      const fromNs = process.hrtime.bigint();
      const waited = performance.now() - began;
      await pause(holdMs);
      const toNs = process.hrtime.bigint();
      await release();
      heldNs.push(fromNs, toNs);
      // An acquisition that ends after the measured time counts as a wait, but not in the rate.
      waitMs.push(waited);
      if (performance.now() <= until) (acquired[contender] as number)++;
    }
  };
  await Promise.all(acquired.map((_, contender) => one(contender)));
  const usage = process.resourceUsage();
  const cpuUs = usage.userCPUTime + usage.systemCPUTime - user - system;
  return { acquired, waitMs, heldNs: BigInt64Array.from(heldNs), cpuUs };
}

process.on("message", () => {
  contend(party).then(
    async (contended) => {
      await party.close();
      process.send?.(contended, () => process.disconnect());
    },
    (error) => {
      console.error(error);
      process.exit(1);
    },
  );
});
process.on("disconnect", () => process.exit());
// One acquisition before the measurement, because the first use creates what the lock needs.
const first = await party.acquire(0);
await first();
process.send?.("ready");
