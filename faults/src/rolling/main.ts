/**
 * A rolling restart with processes of two real builds on one store: docs/operate/releases.md.
 *
 *   npm run prove -- rolling  from the version before the newest migration to this one
 *   … -- --from REF           from that commit
 *   … --seconds S             duration of each phase; default 3
 *   … --json                  prints only the line of JSON
 *
 * N is this version, N − 1 the earlier one. Two nodes and a remote worker of N − 1 execute slots, serial slots, flows, and runs that they
 * enqueue themselves. Meanwhile `carillon migrate` of N migrates the schema, and another node of N − 1 starts on the newer schema. Then
 * nodes and workers of N start, and those of N − 1 are stopped one by one with SIGTERM. In the end every slot and every acknowledged run
 * must have run exactly once.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { throwAwayFolder } from "@carillon/zookeeper/testing";
import pg from "pg";
import { Postgres } from "../postgres.ts";
import { childrenEach, everyMs } from "./load.ts";
import { Process } from "./process.ts";
import { accountOf, latestOf, type Seen, type Stored, type Version } from "./seen.ts";

const { values } = parseArgs({
  options: {
    from: { type: "string", default: "" },
    // The folders with the builds of N − 1 and of this version; scripts/prove/rolling.mjs sets them.
    old: { type: "string", default: "" },
    new: { type: "string", default: "" },
    seconds: { type: "string", default: "3" },
    json: { type: "boolean", default: false },
  },
});
const seconds = Number(values.seconds);
if (!(seconds > 0) || values.old === "" || values.new === "")
  throw new Error("start this as `npm run prove -- rolling`");

const schema = "rolling";
const patienceMs = 60_000;
const folder = throwAwayFolder("rolling");
mkdirSync(folder, { recursive: true });
const file = join(folder, "seen.jsonl");
const builds: Record<Version, string> = { old: values.old, new: values.new };
const beganMono = performance.now();
const say = (text: string) => {
  if (!values.json)
    process.stdout.write(`${((performance.now() - beganMono) / 1_000).toFixed(1).padStart(6)} s  ${text}\n`);
};

const postgres = await Postgres.start();
const { url } = postgres;
const sql = new pg.Pool({ connectionString: url, max: 2 });
// An idle connection may break when its server stops; that is not a fault.
sql.on("error", () => undefined);
const processes: Process[] = [];
const addresses = await Promise.all(Array.from({ length: 5 }, freeAddress));
let key = "";
const begin = async (by: Version, role: "node" | "worker", name: string, listen: string[]): Promise<Process> => {
  const one = new Process({ build: builds[by], by, name, file, role, url, schema, listen, key });
  processes.push(one);
  await one.started(patienceMs);
  say(`${by === "old" ? "N − 1" : "N    "} ${name} has started`);
  return one;
};
const end = async (one: Process) => {
  await one.end(patienceMs);
  say(`      ${one.name} has ended`);
};
const carillon = (by: Version, ...args: string[]) =>
  execFileSync(
    process.execPath,
    [join(builds[by], "cli/main.js"), ...args, "--store", url, "--schema", schema, "--json"],
    {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
const [a, b, c, d, e] = addresses as [string, string, string, string, string];
let ok = false;
try {
  say(`N − 1 is ${values.from}`);
  const one = await begin("old", "node", "old-one", [a]);
  key = (JSON.parse(carillon("old", "keys", "create", "far", "--group", "far")) as { key: string }).key;
  const two = await begin("old", "node", "old-two", [b]);
  const far = await begin("old", "worker", "old-far", [a, b, c, d]);
  const fromMs = Date.now();
  await pause(seconds * 1_000);
  const before = await schemaVersion();
  carillon("new", "migrate");
  const after = await schemaVersion();
  say(`migrated from ${before} to ${after}, beneath three processes of N − 1`);
  await pause(seconds * 1_000);
  const late = await begin("old", "node", "old-late", [e]);

  await begin("new", "node", "new-one", [c]);
  await pause(seconds * 1_000);
  await end(one);
  await pause(seconds * 1_000);
  await begin("new", "node", "new-two", [d]);
  await begin("new", "worker", "new-far", [d, c]);
  await pause(seconds * 1_000);
  await end(two);
  await end(late);
  // In this phase a worker of N − 1 is served only by nodes of N.
  await pause(seconds * 1_000);
  await end(far);
  await pause(seconds * 1_000);

  for (const each of processes) each.quiet();
  const untilMs = Date.now();
  await untilRan(untilMs);
  // Workers end before nodes ("worker" sorts after "node", so the order is reversed), because they report their last results to a node.
  const left = processes.filter(({ alive }) => alive);
  for (const each of left.toSorted((one, other) => other.role.localeCompare(one.role))) await end(each);

  const seen = readFileSync(file, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Seen);
  for (const { name, by, how } of processes) seen.push({ kind: "exit", atMs: Date.now(), by, node: name, how });
  const { figures, wrong } = accountOf(seen, await stored(), {
    every: everyMs,
    fromMs,
    untilMs,
    serial: ["serial"],
    children: { joined: childrenEach },
    missed: await missed(),
  });
  if (figures.missed > 0) wrong.push(`${figures.missed} slots are put down as missed or skipped`);
  // A case that did not occur was not tested, so it counts as a fault.
  for (const name of ["old_to_new", "new_to_old", "joined", "enqueued"] as const)
    if (figures[name] === 0) wrong.push(`${name} is 0: the two versions had too little to do with each other`);
  for (const text of latestOf(seen, fromMs)) say(`late: ${text}`);
  for (const text of wrong) say(`✗ ${text}`);
  const versions = await taskVersions();
  ok = wrong.length === 0;
  const line = {
    question: "rolling",
    from: values.from,
    schema_from: before,
    schema_to: after,
    ...figures,
    ...versions,
    ok,
    wrong,
  };
  process.stdout.write(`${JSON.stringify(line)}\n`);
} finally {
  for (const each of processes) each.kill();
  await sql.end();
  await postgres.close();
}
process.exitCode = ok ? 0 : 1;

async function freeAddress(): Promise<string> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return `127.0.0.1:${port}`;
}

async function schemaVersion(): Promise<number> {
  const { rows } = await sql.query(`select max(number) as number from ${schema}.migration`);
  return rows[0].number;
}

/** Waits until all runs that are due by `untilMs` have ended, whether scheduled or enqueued. @throws after a time limit */
async function untilRan(untilMs: number): Promise<void> {
  const deadline = performance.now() + patienceMs;
  for (;;) {
    const { rows } = await sql.query(
      `select count(*)::int as left from ${schema}.run r join ${schema}.task t on t.id = r.task_id
       where r.due_ms <= $1 and t.name = any($2)`,
      [untilMs, [...Object.keys(everyMs), "work"]],
    );
    if (rows[0].left === 0) return;
    if (performance.now() > deadline) throw new Error(`${rows[0].left} runs that are due did not end`);
    await pause(50);
  }
}

async function stored(): Promise<Stored[]> {
  const { rows } = await sql.query(
    `select r.id, t.name, r.slot_ms, r.outcome, r.attempt from ${schema}.run_history r join ${schema}.task t on t.id = r.task_id`,
  );
  return rows.map(({ id, name, slot_ms, outcome, attempt }) => ({
    run: Number(id),
    task: name,
    slotMs: slot_ms === null ? null : Number(slot_ms),
    succeeded: outcome === 0,
    attempt,
  }));
}

async function missed(): Promise<number> {
  const { rows } = await sql.query(
    `select (select count(*)::int from ${schema}.slot where run_id is null) + (select count(*)::int from ${schema}.slot_range) as missed`,
  );
  return rows[0].missed;
}

/**
 * Returns the highest version number of a task's definition. It grows if the two releases store the same definition in different
 * forms, because each release would then overwrite the other's form again and again.
 */
async function taskVersions() {
  const { rows } = await sql.query(`select max(version) as most from ${schema}.task`);
  return { definition_versions_most: rows[0].most as number };
}
