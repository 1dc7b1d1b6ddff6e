import { seeded } from "../../../scheduler/src/base/random.ts";
import { firstViolation } from "../check/checkers.ts";
import { firstLockViolation } from "../check/locks/checkers.ts";
import { trustForCause } from "../check/trust-for-cause.ts";
import { type Dump, dumped, type History, type Violation } from "../history.ts";
import type { LockHistory } from "../lock-history.ts";
import type { Contenders } from "../locks/contenders.ts";
import { serviceOf } from "../locks/seen.ts";
import { type Plan, recoveryMs } from "../plan/plan.ts";
import { SimulatedCoordination } from "../world/coordination.ts";
import { Network } from "../world/network.ts";
import type { Server } from "../world/server.ts";
import type { Stage } from "../world/stage.ts";
import { tripwire } from "../world/tripwire.ts";
import { Universe } from "../world/universe.ts";
import { Cluster } from "./cluster.ts";
import { withThoseOfMany } from "./of-many.ts";
import { Recorder } from "./recorder.ts";

export interface Verdict {
  readonly seed: number;
  readonly hash: string;
  readonly statements: number;
  readonly violation: Violation | undefined;
  readonly history: History;
  readonly trace: readonly string[];
}

const farthestMs = 5_000;
/** The largest drift of a process's clock, in ms, after a minute and a half without the store. */
const driftMs = 20;

/** Plays one seed by its plan, and checks its history. @param traced if true, the trace is recorded, with lines of the debug log */
export async function simulate(plan: Plan, stage: Stage, server: Server, traced = false): Promise<Verdict> {
  await stage.reset(plan.timeline);
  const universe = new Universe(traced);
  const recorder = new Recorder(universe, traced);
  const before = server.statements;
  const waitedBefore = server.waited;
  server.begin(universe, stage.epochMs, (who, statement, rows, storeMs) => {
    const claimed = recorder.ran(who, statement, rows, storeMs);
    const [node = ""] = who.split("#");
    const [row] = rows;
    if (claimed.length > 0) cluster.strikes.claimed(node, claimed);
    if (statement.name === "lock-session-beat") cluster.strikes.beaten(node);
    if (statement.name === "grace-lock-read" && row) cluster.strikes.looked(node, row);
    if (statement.name === "session-open" && row) cluster.strikes.opened(node, row.id as number);
    if (statement.name === "session-end" && row && statement.values[1] !== null)
      cluster.strikes.over(statement.values[0] as number);
  });
  const network = new Network(universe, seeded(plan.seed ^ 0x5eed));
  const coordination = new SimulatedCoordination(network);
  const cluster = new Cluster({ plan, universe, network, server, coordination, recorder, stage });
  tripwire.take();
  cluster.start();
  for (const { atMs, act } of plan.acts) universe.after(atMs, () => cluster.do(act));
  universe.after(plan.healMs, () => cluster.heal());
  await universe.run(plan.endMs);
  if (universe.spun) recorder.unexpected("time stands still: something goes on without any of it passing");
  for (const touched of tripwire.take()) recorder.unexpected(`the system's time or chance was used: ${touched}`);
  const endStoreMs = server.wallMs();
  await cluster.end();
  const end = await dump(stage);
  const steps = plan.acts.map(({ act }) => (act.kind === "store clock" ? Math.abs(act.stepMs) : 0));
  const history: History = {
    endMs: plan.endMs,
    endStoreMs,
    healMs: plan.healMs,
    recoveredMs: plan.healMs + recoveryMs,
    epochMs: stage.epochMs,
    sessionTimeoutMs: plan.sessionTimeoutMs,
    slackMs: 0,
    concurrency: plan.concurrency,
    coordination: plan.coordination,
    nodes: plan.nodes.map(({ name }) => name),
    clockErrorMs: Math.min(network.longestMs, farthestMs) + steps.reduce((sum, step) => sum + step, 0) + driftMs,
    executions: recorder.executions,
    applied: recorder.applied,
    operations: withThoseOfMany(recorder.operations, recorder.applied, end),
    happenings: recorder.happenings,
    blocked: server.waited - waitedBefore,
    dump: end,
    locks: plan.locks && cluster.contenders ? locksOf(plan, cluster.contenders, recorder) : null,
  };
  let violation: Violation | undefined;
  const [surprise] = recorder.surprises;
  if (surprise) violation = { invariant: "nothing unexpected", what: surprise.what, atMs: surprise.atMs };
  violation ??= history.locks ? firstLockViolation(history.locks) : firstViolation(history, [trustForCause]);
  return {
    seed: plan.seed,
    hash: universe.hash(),
    statements: server.statements - before,
    violation,
    history,
    trace: universe.trace,
  };
}

function locksOf(plan: Plan, { lives, looks, writes, attempts }: Contenders, { applied }: Recorder): LockHistory {
  const { healMs, endMs, locks } = plan;
  return {
    ...serviceOf(applied, lives, locks?.graceMs ?? 0),
    looks,
    writes,
    attempts,
    calmFromMs: healMs + recoveryMs,
    endMs,
    slackMs: 0,
    forgotMs: [],
  };
}

async function dump(stage: Stage): Promise<Dump> {
  const tables: Record<string, unknown> = {};
  for (const [name, text] of Object.entries(dumped))
    tables[name] = await stage.query(text.replaceAll("S.", `${stage.schema}.`));
  return tables as unknown as Dump;
}
