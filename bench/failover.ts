/**
 * How many slots are late, lost or doubled when the leader fails, and how long is there no leader?
 *
 *   npm run bench -- failover               three nodes, 500 tasks every second, session timeout 10 s, 20 rounds of each
 *                                           fault with each driver: about 65 minutes; the start prints an estimate
 *   … --rounds N                            fewer rounds
 *   … --driver postgres|zookeeper|redis     one driver only; postgres uses the store alone
 *   … --fault killed|paused|cut-coordination|cut-store|graceful
 *   … --json
 *
 * The faults: the leader is killed with -9; it is stopped (SIGSTOP) for a second longer than its session lasts, then continued; it is cut
 * from the coordination service or from the store, in turn by refused connections and by a network that drops everything; it is stopped
 * gracefully. Nodes are processes, each with TCP proxies before the store and the service. Every slot that came due is compared with the
 * handlers' log (a file, written at each start), the slot ledger and the run history.
 *
 * A new process replaces a killed or gracefully stopped one, once another node leads and six seconds have passed. Slots after that moment
 * are counted, but their lateness is not, because the start of a process on a machine with few cores is not part of the question.
 *
 * Each node is a worker too, so a failed leader has claimed runs that are due within at most a second. Those slots run again after
 * detection and the task's grace, as `onWorkerLost` says; their lateness is reported separately (`rerun`). If the process continues to work
 * (cut from the service, stopped gracefully), its claims are measured like all others.
 */
import { loadavg } from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import pg from "pg";
import { Cluster } from "./cluster/cluster.ts";
import { chosen, coordinationUrl, type Driver, drivers, startService } from "./cluster/drivers.ts";
import { type SlotSum, sumSlots } from "./cluster/slots.ts";
import { type Fault, faults, sessionTimeoutMs } from "./failover/faults.ts";
import { type Figures, median, rounded } from "./measure/figures.ts";
import { machine } from "./measure/report.ts";
import { serverTitle } from "./measure/server.ts";

const tasks = Array.from({ length: 500 }, (_, i) => ({ name: `failover-${String(i).padStart(3, "0")}` }));
const nodes = 3;
/** The time without a fault before each fault, in ms; up to 1 s at random is added. */
const settleMs = 2_000;
const claimsSettleMs = 300;
/** The shortest time in ms for which slots are observed after each fault. */
const watchedMs = 6_000;
const patienceMs = 60_000;
const aims = {
  crash: { lateMs: 250, leaderMs: sessionTimeoutMs + 1_000 },
  graceful: { lateMs: 50, leaderMs: 100 },
};

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "20" },
    driver: { type: "string", default: "all" },
    fault: { type: "string", default: "all" },
    json: { type: "boolean", default: false },
    peers: { type: "boolean", default: false },
    "no-peers": { type: "boolean", default: false },
  },
});
if (values.peers) throw new Error("this question has no peers yet: --peers can be asked for where there are some");
const rounds = Number(values.rounds);
if (!Number.isInteger(rounds) || rounds < 1)
  throw new Error(`--rounds must be a whole number above 0, not ${values.rounds}`);
const driversChosen = chosen("driver", values.driver, drivers);
const faultNames = chosen(
  "fault",
  values.fault,
  faults.map(({ name }) => name),
);
const faultsOf = (driver: Driver) =>
  faults.filter(({ name, ofService }) => faultNames.includes(name) && !(ofService && driver === "postgres"));
const url = process.env.CARILLON_BENCH_POSTGRES_URL ?? "";
if (url === "") throw new Error("CARILLON_BENCH_POSTGRES_URL is not set; start this by `npm run bench -- failover`");

interface Round extends Omit<SlotSum, "lateness"> {
  leaderMs: number;
  terms: number;
}

const client = new pg.Client({ connectionString: url });
await client.connect();
const titles = [await serverTitle(client)];
const rows: { driver: Driver; fault: Fault; rounds: Round[] }[] = [];
const wrong: string[] = [];
const aboutMs = driversChosen.flatMap(faultsOf).reduce((sum, fault) => sum + fault.aboutMs * rounds, 0);
progress(`this takes about ${Math.ceil(aboutMs / 60_000 + driversChosen.length / 4)} minutes`);
try {
  for (const driver of driversChosen) await measure(driver);
} finally {
  await client.end();
}
report();

async function measure(driver: Driver): Promise<void> {
  const mine = faultsOf(driver).map((fault) => ({ driver, fault, rounds: [] as Round[] }));
  rows.push(...mine);
  const service = await startService(driver);
  if (service) titles.push(service.title);
  const schema = `bench_failover_${driver}`;
  const cluster = new Cluster({
    client,
    storeUrl: url,
    schema,
    nodes,
    tasks,
    sessionTimeoutMs,
    coordinationUrl: coordinationUrl(driver, service, "bench"),
  });
  try {
    await cluster.begin();
    await cluster.whole(patienceMs);
    let fromMs = Math.ceil(Date.now() / 1_000) * 1_000;
    for (let round = 1; round <= rounds; round++) {
      for (const row of mine) {
        const { toMs, ...result } = await fail(cluster, schema, row.fault, round, fromMs);
        fromMs = toMs;
        row.rounds.push(result);
        wrong.push(...result.faults.slice(0, 3).map((text) => `${driver} ${row.fault.name} ${round}: ${text}`));
        progress(`${driver} ${row.fault.name} ${round}/${rounds}: ${line(result)}`);
      }
    }
  } finally {
    await cluster.end();
    await service?.close();
  }
}

/**
 * Inflicts the fault on the leader, waits until the cluster has recovered, and evaluates the slots since `fromMs`.
 * @param fromMs epoch ms; earlier slots have been evaluated already
 * @returns the figures, and in `toMs` the time up to which slots are now evaluated
 */
async function fail(
  cluster: Cluster,
  schema: string,
  fault: Fault,
  round: number,
  fromMs: number,
): Promise<Round & { toMs: number }> {
  await pause(settleMs + Math.random() * 1_000);
  const leader = await cluster.leader();
  if (!leader) throw new Error("nobody leads although nothing is wrong");
  const faultMs = Date.now();
  await fault.inflict(leader.node, round);
  if (!fault.livesOn) await pause(claimsSettleMs);
  const claimed = fault.livesOn ? new Set<string>() : await cluster.claimedBy(leader.sessionId);
  const next = async () => (await cluster.terms(leader.term)).at(-1);
  await cluster.until("another leader", patienceMs, async () => (await next()) !== undefined);
  const watched = () => pause(Math.max(0, faultMs + watchedMs - Date.now()));
  if (fault.replaced) await watched();
  const mendMs = Date.now();
  await fault.mend(cluster, leader.node, faultMs);
  await cluster.whole(patienceMs);
  await watched();
  const toMs = Math.floor((Date.now() - 1_500) / 1_000) * 1_000;
  const span = { fromMs, toMs, faultMs, quietMs: faultMs - settleMs, endMs: fault.replaced ? mendMs : toMs, claimed };
  const { lateness: _, ...sum } = await sumSlots(client, schema, tasks, cluster.starts, span);
  cluster.starts.forget(toMs);
  const [terms, elected] = [await cluster.terms(leader.term - 1), await next()];
  // A leader that stops gracefully leads until its term ends. With the other faults the time without a leader starts at the fault.
  const since = fault.graceful ? (terms.find(({ term }) => term === leader.term)?.endedMs ?? faultMs) : faultMs;
  return { ...sum, leaderMs: (elected?.electedMs ?? Number.NaN) - since, terms: terms.length - 1, toMs };
}

function line({ worstMs, worstAtMs, claimed, claimedWorstMs, beforeWorstMs, leaderMs, lost, doubled }: Round): string {
  const load = rounded(loadavg()[0] as number);
  return `worst ${rounded(worstMs)} ms, of what was due ${Math.round(worstAtMs)} ms after it (before ${rounded(beforeWorstMs)}), leader after ${Math.round(leaderMs)} ms, ${claimed} claimed by it, rerun within ${Math.round(claimedWorstMs)} ms, ${lost} lost, ${doubled} doubled, load ${load}`;
}

function report(): void {
  const worst = (of: number[]) => of.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  const total = (of: number[]) => of.reduce((a, b) => a + b, 0);
  const figures: Figures = {};
  const lines = [
    ["driver", "fault", "rounds", "worst late ms", "before", "leader ms", "rerun ms", "due", "lost", "doubled", "aim"],
  ];
  for (const row of rows) {
    const { driver, fault } = row;
    const aim = fault.graceful ? aims.graceful : aims.crash;
    const of = (name: Exclude<keyof Round, "faults">) => row.rounds.map((round) => round[name]);
    const both = (name: Exclude<keyof Round, "faults">) => `${rounded(median(of(name)))} / ${rounded(worst(of(name)))}`;
    const [lost, doubled, due] = [total(of("lost")), total(of("doubled")), total(of("due"))];
    const reached = [
      [`late ≤ ${aim.lateMs}`, worst(of("worstMs")) <= aim.lateMs],
      [`leader ≤ ${aim.leaderMs}`, worst(of("leaderMs")) <= aim.leaderMs],
      ["0 lost, 0 doubled", lost + doubled === 0],
    ] as const;
    const verdict = reached.map(([what, yes]) => `${what} ${yes ? "reached" : "NOT REACHED"}`).join(", ");
    const counts = [due, lost, doubled].map(String);
    const times = [both("worstMs"), both("beforeWorstMs"), both("leaderMs"), both("claimedWorstMs")];
    lines.push([driver, fault.name, String(row.rounds.length), ...times, ...counts, verdict]);
    const suffix = `${fault.name.replace("-", "_")}_${driver}`;
    Object.assign(figures, {
      [`late_max_ms_${suffix}`]: median(of("worstMs")),
      [`late_max_ms_worst_${suffix}`]: worst(of("worstMs")),
      [`leader_ms_${suffix}`]: median(of("leaderMs")),
      [`leader_ms_worst_${suffix}`]: worst(of("leaderMs")),
      [`rerun_after_ms_worst_${suffix}`]: worst(of("claimedWorstMs")),
      [`slots_due_${suffix}`]: due,
      [`lost_${suffix}`]: lost,
      [`doubled_${suffix}`]: doubled,
    });
  }
  const where = machine(titles.join(", "));
  if (!values.json) {
    const widths = lines[0]?.map((_, i) => Math.max(...lines.map((cells) => (cells[i] as string).length))) ?? [];
    console.log(`\nfailover, ${rounds} rounds: median / worst; load ${rounded(loadavg()[1] as number)}\n${where}\n`);
    for (const cells of lines)
      console.log(
        cells
          .map((text, i) => text.padEnd(widths[i] as number))
          .join("  ")
          .trimEnd(),
      );
    console.log("\nrerun: slots that the dead process had claimed, which run again after its session and the grace.");
  }
  if (wrong.length > 0) {
    process.exitCode = 1;
    console.error(`IT DOES NOT ADD UP\n  ${wrong.join("\n  ")}`);
  }
  const limits = Object.fromEntries(Object.entries(figures).map(([name, value]) => [name, rounded(value)]));
  console.log(
    JSON.stringify({ question: "failover", runs: rounds, carillon: limits, peers: {}, limit: {}, machine: where }),
  );
}

function progress(text: string): void {
  if (!values.json) console.error(text);
}
