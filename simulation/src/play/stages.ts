import { existsSync } from "node:fs";
import pg from "pg";
import { types } from "../../../scheduler/src/store/postgres/columns.ts";
import type { Plan } from "../plan/plan.ts";
import { Server } from "../world/server.ts";
import { Stage } from "../world/stage.ts";
import { simulate, type Verdict } from "./simulate.ts";

/** Start times five minutes before New York's clocks change: once from 2:00 to 3:00, once from 2:00 back to 1:00. */
const epochs = [Date.UTC(2027, 2, 14, 6, 55), Date.UTC(2027, 10, 7, 5, 55)];

/** The stages (schemas) of one process, each with a simulated server. A seed is always played on the same stage. */
export class Stages {
  readonly #pairs: { stage: Stage; server: Server }[];

  private constructor(pairs: { stage: Stage; server: Server }[]) {
    this.#pairs = pairs;
  }

  /**
   * @param name part of the schemas' names; two campaigns at the same time need different names
   * @param onConnection called for each connection on which seeds are played, with the id of its server process
   */
  static async open(url: string, name: string, onConnection: (pid: number) => void = () => undefined): Promise<Stages> {
    const near = await nearest(url);
    const pairs: { stage: Stage; server: Server }[] = [];
    for (const [i, epochMs] of epochs.entries()) {
      const stage = await Stage.make(near, `simulation_${name}_${i}`, epochMs);
      pairs.push({ stage, server: new Server({ url: near, types, onConnection }) });
    }
    return new Stages(pairs);
  }

  play(plan: Plan, traced = false): Promise<Verdict> {
    const { stage, server } = this.#pairs[plan.seed % this.#pairs.length] as { stage: Stage; server: Server };
    return simulate(plan, stage, server, traced);
  }

  async close(): Promise<void> {
    for (const { stage, server } of this.#pairs) {
      await server.close();
      await stage.close();
    }
  }
}

/** Returns a URL with the server's Unix socket if this machine has it, because a seed spends much of its time on round trips. */
async function nearest(url: string): Promise<string> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query("select current_setting('unix_socket_directories') as folder");
    const [folder = ""] = String(rows[0].folder).split(",");
    const { port, pathname, username, password } = new URL(url);
    if (folder === "" || !existsSync(`${folder}/.s.PGSQL.${port || 5432}`)) return url;
    return `postgresql://${username}:${password}@${pathname}?host=${encodeURIComponent(folder)}&port=${port || 5432}`;
  } finally {
    await client.end();
  }
}
