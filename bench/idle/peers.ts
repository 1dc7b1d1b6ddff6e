/**
 * How many queries does one worker of a peer send while there is nothing to do? Measured with the peer's settings for a backlog (with its
 * default polling interval), and with those for low latency (`_prompt`). All peers run at once, since none of them does any work. Each has
 * its own database, whose statements PostgreSQL counts; BullMQ alone uses Redis.
 */
import { setTimeout as pause } from "node:timers/promises";
import { Arena } from "../contest/arena.ts";
import { contenders, type Order } from "../contest/contender.ts";
import { tellRedis } from "../contest/redis.ts";
import { spentBy } from "../contest/spent.ts";
import type { Figures } from "../measure/figures.ts";

const settleMs = 15_000;

export async function idlePeers(seconds: number): Promise<Record<string, Figures>> {
  const found: Record<string, Figures> = {};
  for (const profile of ["many", "prompt"] as const) {
    const peers = contenders.filter((who) => who !== "carillon");
    await Promise.all(
      peers.map(async (who) => {
        const suffix = profile === "prompt" ? "_prompt" : "";
        const perS = await idle(who, profile, seconds);
        const kind = who === "bullmq" ? "commands_per_s_redis_1" : "statements_per_s_postgres_1";
        found[who] = { ...found[who], [`${kind}${suffix}`]: perS };
      }),
    );
  }
  return found;
}

async function idle(who: string, profile: Order["profile"], seconds: number): Promise<number> {
  const arena = await Arena.open({ who, profile });
  try {
    const spent = await spentBy(arena);
    const asked = who === "bullmq" ? redisCommands : async () => (await spent()).calls;
    const runs = await arena.enter("runs");
    await runs.ask("work");
    await pause(settleMs);
    // Two readings in a row show how many statements a reading itself adds.
    const [quiet, before] = [await asked(), await asked()];
    await pause(seconds * 1_000);
    const calls = (await asked()) - before - (before - quiet);
    await runs.stop();
    return calls / seconds;
  } finally {
    await arena.close();
  }
}

/** Returns the number of commands that Redis has processed; Redis may include commands called by scripts. */
async function redisCommands(): Promise<number> {
  const stats = await tellRedis(process.env.CARILLON_BENCH_REDIS_URL ?? "", "INFO stats");
  return Number(/total_commands_processed:(\d+)/.exec(stats)?.[1]);
}
