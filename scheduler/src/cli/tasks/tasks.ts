import { runObject } from "../../api/run-json.ts";
import { labelsOfPairs } from "../../api/run-labels.ts";
import { pause, systemClock } from "../../base/clock.ts";
import { parseDuration } from "../../base/duration.ts";
import { CarillonError } from "../../base/errors.ts";
import { readJson } from "../../base/json.ts";
import type { Member } from "../../cluster/session-store.ts";
import type { IfKeyTaken } from "../../run/enqueue-options.ts";
import { outcomes } from "../../run/run.ts";
import type { RunRecord } from "../../run/run-record.ts";
import { compileSchedule } from "../../schedule/schedule.ts";
import { plannedSlots } from "../../slots/upcoming-slots.ts";
import type { TaskRecord } from "../../task/task-record.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import type { Cluster, ManualOptions } from "../nodes/cluster.ts";
import { withCluster } from "../reach.ts";
import { endLine } from "../runs/event-lines.ts";
import { instantOf } from "../runs/operations.ts";
import { endOfRun } from "../runs/run-text.ts";
import type { Terminal } from "../screen/terminal.ts";
import { plain } from "../screen/text.ts";
import { ageText, localZone, timeText, zoneOfSpec } from "../screen/times.ts";
import type { CommonOptions } from "../store-choice.ts";
import { clockChange } from "./clock-changes.ts";
import { routeText } from "./policy-text.ts";
import { ruleText } from "./ruled-slots.ts";

/** The live processes whose worker serves the group and that are not draining. */
export const groupWorkers = (members: Member[], group: string, nowMs: number) =>
  members.filter(
    (member) => member.groups?.includes(group) && !member.draining && nowMs - member.seenMs <= member.timeoutMs,
  );

/**
 * The live workers that may run the task. A remote worker may report the tasks for which it has handlers; a worker that reports none may
 * run any task of its groups.
 */
export const workersOf = (
  members: Member[],
  { name, group, of }: { name: string; group: string; of: string | null },
  nowMs: number,
) => groupWorkers(members, group, nowMs).filter(({ tasks = null }) => tasks === null || tasks.includes(of ?? name));

export function listTasks(
  options: CommonOptions & { of?: string; owner?: string },
  terminal: Terminal,
): Promise<ExitCode> {
  return withCluster(options, async ({ cluster }) => {
    const { of, owner } = options;
    const found = await cluster.tasks.list({ of, owner });
    // `find` throws TASK_UNKNOWN if the parent task does not exist.
    if (of !== undefined && found.length === 0) await cluster.tasks.find(of);
    const now = cluster.nowMs();
    if (terminal.json) {
      terminal.object(found);
      return exitCodes.ok;
    }
    const tasks = of === undefined ? found.filter((task) => task.of === null) : found;
    if (tasks.length === 0 && of !== undefined && owner === undefined) {
      terminal.aside(`Task ${plain(of)} has no schedules. Give it one: carillon tasks schedule ${plain(of)} NAME WHEN`);
      return exitCodes.ok;
    }
    if (tasks.length === 0 && owner !== undefined) {
      terminal.aside(`No task has the owner ${plain(owner)}.`);
      return exitCodes.ok;
    }
    if (tasks.length === 0) {
      terminal.aside(`No tasks in ${cluster.place} yet. Define some in a file and start it: carillon dev tasks.ts`);
      return exitCodes.ok;
    }
    const { members } = await cluster.members();
    const { style } = terminal;
    // An older server sends no owner.
    const owned = tasks.some((task) => task.owner != null);
    terminal.table(
      [
        { title: "TASK", least: 12 },
        ...(owned ? [{ title: "OWNER", least: 6, drop: 5 }] : []),
        { title: "SCHEDULE", least: 16 },
        { title: "NEXT" },
        { title: "AT", drop: 3 },
        { title: "OK", align: "right", drop: 1 },
        { title: "FAILED", align: "right", drop: 2 },
        { title: "MISSED", align: "right", drop: 4 },
        { title: "" },
      ],
      tasks.map((task) => {
        const next = task.next === null ? null : Date.parse(task.next);
        const { schedule } = task;
        const { succeeded, failed, missed } = task.counters;
        const served = workersOf(members, task, now).length > 0;
        return [
          plain(task.name),
          ...(owned ? [plain(task.owner ?? "")] : []),
          plain(task.words),
          next === null ? { text: "–", paint: style.dim } : ageText(next, now),
          next === null ? "" : { text: timeText(next, zoneOfSpec(schedule)), paint: style.dim },
          succeeded === 0 ? "" : { text: String(succeeded), paint: style.good },
          failed === 0 ? "" : { text: String(failed), paint: style.bad },
          missed === 0 ? "" : { text: String(missed), paint: style.warning },
          task.paused
            ? { text: "paused", paint: style.warning }
            : !served
              ? { text: "no worker", paint: style.dim }
              : {
                  text: [task.edited.length > 0 ? "edited" : "", routeText(task), schedulesText(task.schedules)]
                    .filter(Boolean)
                    .join(", "),
                  paint: style.dim,
                },
        ];
      }),
    );
    return exitCodes.ok;
  });
}

const schedulesText = (schedules: number): string =>
  schedules === 0 ? "" : `${schedules} ${schedules === 1 ? "schedule" : "schedules"}`;

export interface NextOptions extends CommonOptions {
  count: number;
  after?: string;
}

export function nextOfTask(name: string, options: NextOptions, terminal: Terminal): Promise<ExitCode> {
  const asked = options.after === undefined ? undefined : instantOf("--after", options.after);
  return withCluster(options, async ({ cluster }) => {
    const { record } = await cluster.tasks.find(name);
    const { schedule } = record.definition;
    const now = cluster.nowMs();
    const after = asked ?? now;
    const zone = zoneOfSpec(schedule);
    const delayed = schedule.type === "every" && schedule.mode === "delay";
    const slots = delayed
      ? [record.nextSlotMs].filter((ms) => ms !== null)
      : plannedSlots(record, after, options.count);
    const rows = slots.map((slotMs, at) => {
      const change = clockChange(schedule, slotMs, at === 0 ? null : (slots[at - 1] as number), zone);
      const ruled = ruleText(record, slotMs, zone);
      return { slotMs, note: [change, ruled].filter((text) => text !== "").join("; ") };
    });
    if (terminal.json) {
      const object = {
        task: name,
        zone: zone.name,
        words: compileSchedule(schedule).words(),
        paused: record.paused !== null,
      };
      terminal.object({
        ...object,
        slots: rows.map(({ slotMs, note }) => ({
          slot: new Date(slotMs).toISOString(),
          local: timeText(slotMs, zone),
          note,
        })),
      });
      return exitCodes.ok;
    }
    const { style } = terminal;
    terminal.line(`${style.title(plain(name))}  ${plain(compileSchedule(schedule).words())}`);
    if (record.paused) {
      const { untilMs } = record.paused;
      const end = untilMs === null ? "it is resumed" : timeText(untilMs, zone);
      terminal.line(style.warning(`  paused: none of these fires until ${end}`));
    }
    if (rows.length === 0) terminal.line(style.dim(delayed ? "  after its last run has ended" : "  no slot to come"));
    terminal.table(
      [{ title: "" }, { title: "" }, { title: "", least: 12 }],
      rows.map(({ slotMs, note }) => [
        timeText(slotMs, zone),
        { text: ageText(slotMs, now), paint: style.dim },
        { text: note, paint: style.warning },
      ]),
      "  ",
    );
    return exitCodes.ok;
  });
}

export interface RunTaskOptions extends CommonOptions {
  payload?: string;
  label?: [string, string][];
  in?: string;
  at?: string;
  key?: string;
  ifKeyTaken?: IfKeyTaken;
  uniqueFor?: string;
  priority?: number;
  wait?: boolean;
  timeout?: string;
}

export function runTask(name: string, options: RunTaskOptions, terminal: Terminal): Promise<ExitCode> {
  const payload = options.payload === undefined ? undefined : parsePayload(options.payload);
  const given = manualOptions(options);
  const timeoutMs = options.timeout === undefined ? null : parseDuration(options.timeout, "--timeout");
  if (timeoutMs !== null && !options.wait)
    throw new CarillonError("USAGE", "--timeout was given, and nothing is waited for", {
      hint: "Give --wait too. How long a run may take: carillon tasks edit NAME --set timeout=5m.",
    });
  return withCluster(options, async ({ cluster, signal }) => {
    const { run: runId, created } = await cluster.tasks.run(name, payload, given);
    if (!options.wait) {
      const what = created ? "is on its way" : "has the key already, so no run was made";
      if (terminal.json) terminal.object({ run: runId, task: name, created });
      else terminal.line(`run ${runId} of ${plain(name)} ${what}; see how it goes: carillon runs show ${runId}`);
      return exitCodes.ok;
    }
    const deadline = timeoutMs === null ? Number.POSITIVE_INFINITY : systemClock.monotonic() + timeoutMs;
    const run = await untilEnded(cluster, runId, deadline, signal, () => void sayIfUnserved(cluster, name, terminal));
    if (signal.aborted) {
      terminal.aside(`run ${runId} goes on; stop it with: carillon runs cancel ${runId}`);
      return exitCodes.interrupted;
    }
    const end = endOfRun(run);
    if (end === undefined) {
      throw new CarillonError("TIMEOUT", `run ${runId} has not ended within ${options.timeout}`, {
        hint: `It goes on. See it with carillon runs show ${runId}, stop it with carillon runs cancel ${runId}.`,
      });
    }
    if (terminal.json) terminal.object(runObject(run));
    else {
      terminal.line(endLine(end, localZone(), terminal.style));
      if (run.result !== null) terminal.line(plain(JSON.stringify(run.result)));
    }
    return run.state === "succeeded" ? exitCodes.ok : exitCodes.failed;
  });
}

function manualOptions({ label, at, in: delay, key, ifKeyTaken, uniqueFor, priority }: RunTaskOptions): ManualOptions {
  const labels = label && labelsOfPairs(label, "--label");
  const atMs = at === undefined ? undefined : instantOf("--at", at);
  return { labels, at: atMs, in: delay, key, ifKeyTaken, uniqueFor, priority };
}

const firstLookMs = 10;
const longestLookMs = 500;
/** An idle worker starts a run at once. After this time, in ms, the command therefore prints what the run waits for. */
const patienceMs = 2_000;

/** Polls the run until it has ended. @returns the run; it may not have ended if the deadline passed or the signal aborted */
async function untilEnded(
  cluster: Cluster,
  runId: number,
  deadline: number,
  signal: AbortSignal,
  onSlow: () => void,
): Promise<RunRecord> {
  const began = systemClock.monotonic();
  let wait = firstLookMs;
  let told = false;
  for (;;) {
    const run = await cluster.runs.find(runId);
    const now = systemClock.monotonic();
    if ((outcomes as readonly string[]).includes(run.state) || signal.aborted || now >= deadline) return run;
    if (!told && run.state !== "claimed" && now - began > patienceMs) {
      told = true;
      onSlow();
    }
    await pause(systemClock, Math.min(wait, Math.max(1, deadline - now)), signal);
    wait = Math.min(wait * 1.5, longestLookMs);
  }
}

async function sayIfUnserved(cluster: Cluster, name: string, terminal: Terminal): Promise<void> {
  const { record } = await cluster.tasks.find(name);
  const { members } = await cluster.members();
  const now = cluster.nowMs();
  const { group: itsGroup, of = null } = record.definition;
  const task = { name, group: itsGroup, of };
  const group = plain(task.group);
  if (record.paused) terminal.aside(`${plain(name)} is paused: the run waits until it is resumed`);
  else if (workersOf(members, task, now).length === 0) {
    const who =
      groupWorkers(members, task.group, now).length === 0
        ? `no live worker serves group ${group}`
        : `no live worker of group ${group} has a handler for ${plain(name)}`;
    terminal.aside(`${who}: the run waits until one does (carillon worker FILE)`);
  }
}

export function parsePayload(text: string): unknown {
  try {
    return readJson(text, "--payload");
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
    throw new CarillonError("PAYLOAD_NOT_JSON", `--payload is not JSON: ${cause.message}`, {
      hint: `For example --payload '{"ledger":"eu"}'; a text needs its quotes too: --payload '"eu"'.`,
      cause,
    });
  }
}

export function pauseTasks(
  names: string[],
  options: CommonOptions & { reason?: string; until?: string },
  terminal: Terminal,
): Promise<ExitCode> {
  const untilMs = options.until === undefined ? null : instantOf("--until", options.until);
  return withTasks(names, options, terminal, async (cluster, { name, definition: { schedule } }) => {
    const { running, held, skipped } = await cluster.tasks.pause(name, options.reason ?? "", untilMs);
    const parts = [
      `${plain(name)} is paused${untilMs === null ? "" : ` until ${timeText(untilMs, zoneOfSpec(schedule))}`}`,
      running.length > 0 ? `still running: ${running.map((run) => `run ${run}`).join(", ")}` : "",
      held > 0 ? `waiting until it is resumed: ${held} ${held === 1 ? "run" : "runs"}` : "",
      skipped > 0 ? `skipped, since they were due: ${skipped} ${skipped === 1 ? "slot" : "slots"}` : "",
    ];
    return {
      object: {
        task: name,
        paused: true,
        until: untilMs === null ? null : new Date(untilMs).toISOString(),
        running,
        held,
        skipped,
      },
      line: parts.filter((part) => part !== "").join("; "),
    };
  });
}

export function resumeTasks(
  names: string[],
  options: CommonOptions & { reason?: string },
  terminal: Terminal,
): Promise<ExitCode> {
  return withTasks(names, options, terminal, async (cluster, { name, definition: { schedule } }) => {
    const next = await cluster.tasks.resume(name, options.reason ?? "");
    const nextText = next === null ? "" : `; next ${timeText(next, zoneOfSpec(schedule))}`;
    return {
      object: { task: name, paused: false, next: next === null ? null : new Date(next).toISOString() },
      line: `${plain(name)} is resumed${nextText}`,
    };
  });
}

/**
 * Calls `act` for each task, after checking that all tasks exist. If one call fails, the command stops there; the changes made before are
 * still printed.
 */
function withTasks(
  names: string[],
  options: CommonOptions,
  terminal: Terminal,
  act: (cluster: Cluster, task: TaskRecord) => Promise<{ object: object; line: string }>,
): Promise<ExitCode> {
  return withCluster(options, async ({ cluster }) => {
    const tasks: TaskRecord[] = [];
    for (const name of new Set(names)) tasks.push((await cluster.tasks.find(name)).record);
    const done: object[] = [];
    try {
      for (const task of tasks) {
        const { object, line } = await act(cluster, task);
        done.push(object);
        if (!terminal.json) terminal.line(line);
      }
    } finally {
      if (terminal.json) terminal.objects(done, names.length);
    }
    return exitCodes.ok;
  });
}
