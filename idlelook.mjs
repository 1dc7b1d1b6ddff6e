import { startServers } from "./scripts/servers.mjs"; import pg from "pg"; import { carillon, cron } from "carillon"; import { setTimeout as pause } from "node:timers/promises";
const s = await startServers(["postgres"], { durable: true }); const url = s.env.CARILLON_TEST_POSTGRES_URL;
const c = new pg.Client({ connectionString: url }); await c.connect(); await c.query("create extension if not exists pg_stat_statements").catch(e => console.log(e.message));
const t = carillon({ store: url, schema: "idle_look", handleSignals: false }); t.task("yearly", { schedule: cron("0 0 1 1 *") }, async () => {}); await t.start(); await pause(5000);
await c.query("select pg_stat_statements_reset()"); await pause(60000);
const { rows } = await c.query("select calls, left(regexp_replace(query, '\\s+', ' ', 'g'), 150) q from pg_stat_statements where query not like '%pg_stat%' order by calls desc limit 30"); for (const r of rows) console.log(r.calls, r.q); await t.stop(); await c.end(); await s.stop();
