import { expect, it } from "vitest";
import { systemClock } from "../../src/clock.ts";
import { silentLog } from "../../src/log.ts";
import { systemRandom } from "../../src/random.ts";
import { Database } from "../../src/store/database.ts";
import { everyPostgres } from "../support/servers.ts";

it.each(everyPostgres())("no statement is compiled, whatever the server's own setting: $title", async ({ url }) => {
  const surroundings = { clock: systemClock, random: systemRandom, log: silentLog };
  const database = new Database({ url, schema: "public", connectionsMax: 2, ...surroundings });
  try {
    const said = () => database.query<{ jit: string }>("jit", "show jit");
    expect((await Promise.all([said(), said()])).flat()).toEqual([{ jit: "off" }, { jit: "off" }]);
    expect(await database.transaction(async (client) => (await client.query("show jit")).rows)).toEqual([
      { jit: "off" },
    ]);
  } finally {
    await database.close();
  }
});
