/**
 * A process that serves a named consumer of events, and records when each handling begins and ends, by the database's clock. Configured by
 * CARILLON_TEST_EVENTS (JSON): { options, name, table, ms }. Prints `ready`, and `handles RUN` for each event.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { carillon } from "carillon";
import pg from "pg";

const { options, name, table, ms } = JSON.parse(process.env.CARILLON_TEST_EVENTS ?? "");
const say = (line) => process.stdout.write(`${line}\n`);
const tower = carillon({ ...options, handleSignals: false });
const database = new pg.Client({ connectionString: options.store });
await database.connect();
await tower.on("run.succeeded", { name }, async ({ runId }) => {
  const begin = `insert into ${table} (run, pid, began) values ($1, $2, clock_timestamp()) returning n`;
  const { rows } = await database.query(begin, [runId, process.pid]);
  say(`handles ${runId}`);
  await sleep(ms);
  await database.query(`update ${table} set ended = clock_timestamp() where n = $1`, [rows[0].n]);
});
say("ready");
