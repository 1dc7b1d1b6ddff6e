import { runObject } from "../../api/run-json.ts";
import { releaseObject, taskObject } from "../../api/task-json.ts";
import { formatDuration } from "../../base/duration.ts";
import type { Follower } from "../../run/flow.ts";
import { outcomes } from "../../run/run.ts";
import type { RunRecord } from "../../run/run-record.ts";
import { compileSchedule, type ScheduleSpec } from "../../schedule/schedule.ts";
import { plannedSlots } from "../../slots/upcoming-slots.ts";
import { editedParts } from "../../task/edits.ts";
import type { TaskDefinition } from "../../task/task.ts";
import type { Counters, ReleaseOfTask, TaskRecord, VersionRecord } from "../../task/task-record.ts";
import { differences } from "../../task/versions.ts";
import { writtenTask } from "../../task/written.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { withCluster } from "../reach.ts";
import { statePaint, stateText } from "../runs/run-text.ts";
import { showRuns } from "../runs/runs.ts";
import type { Terminal } from "../screen/terminal.ts";
import { plain, wrap } from "../screen/text.ts";
import { ageText, timeText, zoneOfSpec } from "../screen/times.ts";
import type { CommonOptions } from "../store-choice.ts";
import { clockChange } from "./clock-changes.ts";
import { partText } from "./edit-task.ts";
import { afterText, followerText, limitsText, routeText } from "./policy-text.ts";
import { rulesText, ruleText } from "./ruled-slots.ts";
import { workersOf } from "./tasks.ts";

const nextShown = 5;
const runsShown = 10;
const versionsShown = 5;
const releasesAtMost = 5;
const nodesAtMost = 5;

export function showTask(name: string, options: CommonOptions, terminal: Terminal): Promise<ExitCode> {
  return withCluster(options, async ({ cluster }) => {
    const { record, counters, schedules, followers, releases } = await cluster.tasks.find(name);
    const wanted = { task: name, limit: runsShown, states: ["claimed" as const, ...outcomes] };
    const runs = await cluster.runs.list(wanted, terminal.json);
    const versions = await cluster.tasks.versions(name);
    const { members } = await cluster.members();
    const now = cluster.nowMs();
    const { schedule, group, of = null } = record.definition;
    const workers = workersOf(members, { name, group, of }, now);
    const slots =
      record.paused?.untilMs === null || (schedule.type === "every" && schedule.mode === "delay")
        ? []
        : plannedSlots(record, now, nextShown);
    if (terminal.json) {
      terminal.object({
        ...taskObject(record, counters, schedules, now),
        definition: record.definition,
        edited: editedParts(record.definition),
        slots: slots.map((ms) => new Date(ms).toISOString()),
        workers: workers.map(({ node }) => node),
        followedBy: followers,
        releases: releases.map(releaseObject),
        runs: runs.map(runObject),
        versions: versions.map(({ definition, changedMs, ...rest }, at) => ({
          ...rest,
          changed: new Date(changedMs).toISOString(),
          parts: partsChanged(definition, versions[at + 1]),
        })),
      });
      return exitCodes.ok;
    }
    const { style } = terminal;
    const card = { record, counters, schedules, workers: workers.map(({ node }) => node), followers, releases };
    printDefinition(card, now, terminal);
    if (slots.length > 0) {
      terminal.line();
      const zone = zoneOfSpec(schedule);
      terminal.table(
        [{ title: "NEXT" }, { title: "" }, { title: "", least: 12 }],
        slots.map((ms, at) => [
          timeText(ms, zone),
          { text: ageText(ms, now), paint: style.dim },
          {
            text: [clockChange(schedule, ms, slots[at - 1] ?? null, zone), ruleText(record, ms, zone)]
              .filter((text) => text !== "")
              .join("; "),
            paint: style.warning,
          },
        ]),
        "  ",
      );
    }
    if (runs.length > 0) {
      terminal.line();
      terminal.line(`  ${style.dim("RUNS")}  ${strip(runs, terminal)}`);
      showRuns(runs, now, terminal);
    }
    terminal.line();
    terminal.table(
      [
        { title: "VERSION", align: "right" },
        { title: "CHANGED" },
        { title: "BY", least: 8 },
        { title: "WHAT", least: 8, drop: 2 },
        { title: "WHY", least: 8, drop: 1 },
      ],
      versions
        .slice(0, versionsShown)
        .map(({ version, changedMs, author, reason, definition }, at) => [
          String(version),
          ageText(changedMs, now),
          plain(author),
          partsChanged(definition, versions[at + 1]).join(", "),
          plain(reason),
        ]),
      "  ",
    );
    return exitCodes.ok;
  });
}

/** The parts in which a version differs from the version before it; empty for the first version. */
function partsChanged(definition: TaskDefinition, before: VersionRecord | undefined): string[] {
  return before ? differences(before.definition, definition) : [];
}

/** Formats one symbol per run, the symbol of its state; the latest run is the last symbol. */
function strip(runs: RunRecord[], { style }: Terminal): string {
  return [...runs]
    .reverse()
    .map(({ state }) => statePaint(state, style)(stateText(state).slice(0, 1)))
    .join("");
}

interface Card {
  record: TaskRecord;
  counters: Counters;
  schedules: number;
  /** Names of the live workers that may run the task. */
  workers: string[];
  followers: Follower[];
  releases: ReleaseOfTask[];
}

function printDefinition(
  { record, counters, schedules, workers, followers, releases }: Card,
  now: number,
  terminal: Terminal,
): void {
  const { definition, paused, version } = record;
  const { style } = terminal;
  const width = Math.min(terminal.width, 110);
  const row = (name: string, text: string, paint = (line: string) => line) => {
    if (text === "") return;
    wrap(plain(text), width - 14).forEach((line, at) => {
      terminal.line(`  ${style.dim((at === 0 ? name : "").padEnd(11))} ${paint(line)}`);
    });
  };
  terminal.line(`${style.title(plain(record.name))}  ${style.dim(`version ${version}`)}`);
  terminal.line();
  row("", definition.description);
  row("schedule", compileSchedule(definition.schedule).words());
  row("", scheduleText(definition), style.dim);
  if (definition.of !== undefined) row("of", `task ${definition.of}, which says all else`);
  if (schedules > 0) row("schedules", `${schedules} more: carillon tasks list --of ${record.name}`);
  if (definition.after) row("after", afterText(definition.after));
  followers.forEach((follower, at) => {
    row(at === 0 ? "followed by" : "", followerText(follower));
  });
  if (paused) {
    row("paused", `${ageText(paused.atMs, now)} by ${paused.by}${paused.why ? `: ${paused.why}` : ""}`, style.warning);
    if (paused.untilMs !== null)
      row("", `until ${timeText(paused.untilMs, zoneOfSpec(definition.schedule))}`, style.warning);
  }
  row(
    "group",
    `${definition.group}, served by ${workers.length === 0 ? "no live worker" : workers.join(", ")}`,
    workers.length === 0 ? style.warning : undefined,
  );
  if (definition.command)
    row(
      "command",
      definition.command.argv.map((word) => (/^[\w./:=@%+,-]+$/.test(word) ? word : JSON.stringify(word))).join(" "),
    );
  if (definition.command?.user) row("as user", definition.command.user);
  if (definition.http) row("calls", `${definition.http.method} ${definition.http.url.replace(/\?.*/, "?…")}`);
  row("route", routeText(definition));
  row("limits", limitsText(definition));
  row("policies", policiesText(definition));
  row("also", otherOptionsText(definition));
  row("not when", rulesText(record));
  if (definition.slotPayload !== null) row("payload", JSON.stringify(definition.slotPayload));
  const { asDefined = {} } = definition;
  const edits = editedParts(definition).map((part) => `${part} (defined as ${partText(asDefined, part, definition)})`);
  row("edited", edits.join("; "), style.warning);
  releasesShown(releases).forEach((release, at) => {
    row(at === 0 ? "code" : "", releaseText(release, now), release.isInForce ? undefined : style.dim);
  });
  const parts = Object.entries(counters).filter(([, count]) => count > 0);
  row("so far", parts.length === 0 ? "no run has ended" : parts.map(([name, count]) => `${count} ${name}`).join(", "));
}

/** Selects the releases whose definition of the task is in force, and those that live nodes run; at most `releasesAtMost`. */
const releasesShown = (releases: ReleaseOfTask[]) =>
  releases.filter(({ isInForce, nodes }) => isInForce || nodes.length > 0).slice(0, releasesAtMost);

function releaseText({ name, isInForce, nodes, seenMs }: ReleaseOfTask, now: number): string {
  const many = nodes.length > nodesAtMost ? ` and ${nodes.length - nodesAtMost} more` : "";
  const who =
    nodes.length === 0
      ? `no process of it lives, the last was seen ${ageText(seenMs, now)}`
      : `${nodes.slice(0, nodesAtMost).join(", ")}${many}`;
  return `release ${name}: ${isInForce ? "in force" : "waits"}; ${who}`;
}

function jitterText(schedule: ScheduleSpec): string {
  if (!("jitterMs" in schedule) || !schedule.jitterMs) return "";
  const most = formatDuration(schedule.jitterMs);
  return schedule.jitterBy === "task"
    ? `, later by one amount of up to ${most}, which is the task's`
    : `, up to ${most} later by jitter`;
}

function scheduleText({ schedule }: TaskDefinition): string {
  const jitter = jitterText(schedule);
  if (!("zone" in schedule)) return jitter.slice(2);
  const source =
    schedule.type === "cron" ? `cron ${schedule.expression}; ` : schedule.type === "rrule" ? `${schedule.rule}; ` : "";
  return `${source}local times that do not exist: ${schedule.gap}; that come twice: ${schedule.overlap}${jitter}`;
}

/** Describes the task's policies on overlap, misfires, retries, timeout and worker loss, and its priority and history. */
function policiesText({ overlap, misfire, retry, timeoutMs, onWorkerLost, priority, history }: TaskDefinition): string {
  const many =
    overlap.limit === null
      ? "runs may overlap"
      : `at most ${overlap.limit} at once, others ${overlapWords[overlap.policy]}${overlap.waiting === undefined ? "" : `, ${overlap.waiting} at most`}`;
  const tries =
    retry.attempts === 1
      ? "no retries"
      : `up to ${retry.attempts} attempts, ${retry.backoff} from ${formatDuration(retry.delayMs)}`;
  return [
    many,
    tries,
    timeoutMs === null ? "no timeout" : `timeout ${formatDuration(timeoutMs)}`,
    `after a halt: ${misfire.policy}`,
    lossWords[onWorkerLost],
    `priority ${priority}`,
    ...(history === "failures" ? ["no history of what succeeds"] : []),
  ].join("; ");
}

/** Options that other lines of the card describe, so that `otherOptionsText` leaves them out. */
const told: readonly string[] = [
  ...["description", "group", "schedule", "slotPayload", "priority", "timeout", "retry", "overlap", "onWorkerLost"],
  ...["history", "command", "http", "calendar", "blackout", "route", "labels", "limit", "rate", "after", "of"],
];
const longestOption = 200;

/**
 * Describes the options that differ from their defaults and have no line of their own, in the notation of an export file. A newly added
 * option appears here without further code.
 */
const otherOptionsText = (definition: TaskDefinition): string =>
  Object.entries(writtenTask(definition))
    // A misfire option that is only a policy's name is already on the line of policies.
    .filter(([option, value]) => !told.includes(option) && !(option === "misfire" && typeof value === "string"))
    .map(([option, value]) => `${option} ${typeof value === "string" ? value : JSON.stringify(value)}`)
    .map((text) => (text.length > longestOption ? `${text.slice(0, longestOption)}…` : text))
    .join("; ");

const lossWords = {
  retry: "run again if its worker is lost",
  fail: "fail if its worker is lost",
  ask: "wait for a decision if its worker is lost",
} as const;
const overlapWords = { allow: "too", queue: "wait", skip: "are skipped", replace: "replace what runs" } as const;
