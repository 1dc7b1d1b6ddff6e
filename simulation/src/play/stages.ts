import { existsSync } from "node:fs";
import pg from "pg";
import { types } from "../../../scheduler/src/store/postgres/columns.ts";
import type { Plan } from "../plan/plan.ts";
import { Server } from "../world/server.ts";
import { Stage } from "../world/stage.ts";
import { simulate, type Verdict } from "./simulate.ts";

/** Ten minutes in which New York's clocks go from 2:00 on to 3:00, and ten in which they go from 2:00 back to 1:00. */
const epochs = [Date.UTC(2027, 2, 14, 6, 55), Date.UTC(2027, 10, 7, 5, 55)];

/** The stages of one process, and a server before each. A seed always plays on the same one. */
export class Stages {
  readonly #pairs: { stage: Stage; server: Server }[];

  private constructor(pairs: { stage: Stage; server: Server }[]) {
    this.#pairs = pairs;
  }

  /**
   * @param name for the schemas: two campaigns at the same time need two names
   * @param onConnection receives the server's process id of each connection on which seeds are played
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

/** Uses the server's Unix socket if it has one on this machine, because half of a seed's time is spent on round trips. */
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
