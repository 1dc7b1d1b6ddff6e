import { existsSync } from "node:fs";
import type pg from "pg";
import { wholeLines } from "../../scheduler/test/support/whole-lines.ts";
import { type Dump, dumped, type Execution, type Happening, type History } from "../../simulation/src/history.ts";
import type { Noted } from "./order.ts";
import { appliedOf, readSeen } from "./seen.ts";

/** A process was stopped (SIGSTOP) and continued; times are in ms since the start of the recording. */
export interface StandStill {
  readonly node: string;
  readonly fromMs: number;
  readonly toMs: number;
}

export interface Recorded
  extends Pick<
    History,
    | "healMs"
    | "recoveredMs"
    | "endMs"
    | "epochMs"
    | "clockErrorMs"
    | "sessionTimeoutMs"
    | "nodes"
    | "concurrency"
    | "coordination"
    | "operations"
    | "happenings"
  > {
  readonly schema: string;
  readonly log: string;
  /** Start of the recording, in ms on the machine's monotonic clock. */
  readonly beganMono: number;
  readonly standStills: readonly StandStill[];
}

/** A machine with fewer cores than processes may keep a process waiting for this many ms. */
const slackMs = 3_000;

/** Joins the processes' log, the recorded actions of the store and its tables into a history that the simulation's checks read. */
export async function historyOf(client: pg.Client, recorded: Recorded): Promise<History> {
  const { schema, log, beganMono, standStills, ...told } = recorded;
  const dump = await readDump(client, schema);
  const owners = new Map(dump.session.map(({ id, node }) => [id as number, node as string]));
  const applied = appliedOf(await readSeen(client, schema), told.epochMs, (session) => owners.get(session) ?? "");
  const noted = readNoted(log);
  const executions = executionsOf(noted, beganMono, told.epochMs, standStills);
  const seen = noted.flatMap((one): Happening[] => {
    const atMs = one.at - beganMono;
    if (one.kind === "log") return [{ atMs, what: `${one.node} ${one.level} ${one.text}` }];
    if (one.kind !== "stalled") return [];
    return [{ atMs: atMs - one.ms, what: `${one.node} stands still for ${one.ms} ms: no processor` }];
  });
  const happenings = [...told.happenings, ...seen].sort((a, b) => a.atMs - b.atMs);
  return {
    ...told,
    applied,
    executions,
    happenings,
    dump,
    slackMs,
    blocked: 0,
    endStoreMs: told.epochMs + told.endMs,
  };
}

export function readNoted(path: string): Noted[] {
  if (!existsSync(path)) return [];
  return wholeLines(path).map((line) => JSON.parse(line) as Noted);
}

/**
 * Joins the logged starts and ends to executions. A process can be stopped after it has checked its claim and before the handler's first
 * line; when it continues, it starts the handler by its earlier decision. Such a start counts as made when the process was stopped. It is
 * recognised by `believedMs`, the process's reading of the store's clock at the decision.
 */
export function executionsOf(
  noted: readonly Noted[],
  beganMono: number,
  epochMs: number,
  standStills: readonly StandStill[],
): Execution[] {
  const executions = new Map<number, Execution>();
  const twice: Execution[] = [];
  for (const one of noted) {
    if (one.kind === "start") {
      const { kind: _, at, ...start } = one;
      const beganMs = at - beganMono;
      const decidedMs = start.believedMs - epochMs;
      const stood = standStills.find(
        ({ node, fromMs, toMs }) => node === start.node && decidedMs < fromMs + readMs && beganMs >= toMs,
      );
      const startMs = stood && beganMs - stood.toMs < wakeMs ? stood.fromMs : beganMs;
      const times = { startMs, startStoreMs: epochMs + startMs };
      const execution: Execution = { ...start, ...times, endMs: null, how: null, stoppedWhy: null };
      // A second start under the same fence is a violation; it is kept so that the checks find it.
      if (executions.has(start.fence)) twice.push(execution);
      else executions.set(start.fence, execution);
    }
    if (one.kind !== "end") continue;
    const execution = executions.get(one.fence);
    if (execution) Object.assign(execution, { endMs: one.at - beganMono, how: one.how, stoppedWhy: one.why });
  }
  return [...executions.values(), ...twice].sort((a, b) => a.startMs - b.startMs);
}

/** A process's estimate of the store's clock may differ from the harness's by this many ms. */
const readMs = 100;
/** A start within this many ms after a process was continued may have been decided before it was stopped. */
const wakeMs = 500;

async function readDump(client: pg.Client, schema: string): Promise<Dump> {
  const tables: Record<string, unknown> = {};
  for (const [name, text] of Object.entries(dumped))
    tables[name] = (await client.query(text.replaceAll("S.", `${schema}.`))).rows;
  return tables as unknown as Dump;
}
