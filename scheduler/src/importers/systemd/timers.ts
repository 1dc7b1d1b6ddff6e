/** Imports systemd's .timer units together with the .service units that they start. */
import type { SourceTimes } from "../compare/source-times.ts";
import { fieldTable, tellFields, tellZone } from "../fields.ts";
import { Findings, type ImportOptions, type Row, type SourceFile } from "../findings.ts";
import { cronOfCalendar } from "./on-calendar.ts";
import { readUnits, spanMs, type Unit, wordsOf } from "./unit-file.ts";

export const timerFields = fieldTable(`
OnCalendar | carried | schedule: a cron in the zone at its end; of several each is a task |
OnUnitActiveSec | carried | schedule: every |
OnUnitInactiveSec | carried | schedule: every, of the mode delay |
OnActiveSec | carried | alone a problem: a moment, not a time |
OnBootSec | carried | alone a problem: the start of a machine |
OnStartupSec | carried | alone a problem: the start of a machine |
RandomizedDelaySec | carried | jitter |
Persistent | carried | misfire: fire_once; without it skip |
Unit | carried | the service; without it that of the same name |
AccuracySec | unused | how far systemd may shift a time |
FixedRandomDelay | carried | jitterBy: task; without it each slot has its own |
RandomizedOffsetSec | carried | jitter, and jitterBy: task; beside RandomizedDelaySec it is lost |
RemainAfterElapse | unused | |
WakeSystem | lost | the machine is woken for it |
OnClockChange | lost | a start at a change of the clock |
OnTimezoneChange | lost | a start at a change of the zone |
DeferReactivation | unused | |
`);

export const serviceFields = fieldTable(`
ExecStart | carried | command.argv, without a specifier such as %i |
Environment | carried | command.env |
WorkingDirectory | carried | command.cwd |
User | carried | command.user |
TimeoutStartSec | carried | timeout |
TimeoutSec | carried | timeout |
Type | unused | |
StandardOutput | unused | a run logs its output |
StandardError | unused | a run logs its output |
SyslogIdentifier | unused | |
EnvironmentFile | lost | variables from a file |
ExecStartPre | lost | programs before it |
ExecStartPost | lost | programs after it |
ExecStopPost | lost | programs after it |
Group | lost | the group of its account |
Restart | lost | whether it is tried again |
`);

export function importSystemd(files: readonly SourceFile[], options: ImportOptions): Findings {
  const findings = new Findings(options);
  const units = readUnits(files);
  const timers = [...units].filter(([name]) => name.endsWith(".timer"));
  if (timers.length === 0)
    findings.problem(
      "",
      "there is no .timer unit in these files",
      "Give NAME.timer and NAME.service, or systemctl cat of both.",
    );
  let unzoned = 0;
  for (const [file, timer] of timers)
    unzoned += addTimer(file.slice(0, -".timer".length), timer, units, options, findings);
  tellZone(unzoned, options.zone, "It is the zone of the timers' machine", findings);
  return findings;
}

const isTrue = (value: string) => /^(?:yes|true|on|1)$/i.test(value);

/**
 * Converts the random delay that systemd adds to a timer's times. systemd chooses it anew for each start, or once per timer (`jitterBy:
 * "task"`).
 */
function spreadOf(
  one: (field: string) => string,
  name: string,
  findings: Findings,
): { jitter: number; jitterBy?: "task" } {
  const ms = (field: string) => {
    const text = one(field);
    const length = text === "" ? 0 : spanMs(text);
    if (length === undefined) findings.lost(name, `its ${field} ${text}, which has no fixed length`);
    return length ?? 0;
  };
  const [delay, offset] = [ms("RandomizedDelaySec"), ms("RandomizedOffsetSec")];
  if (delay > 0 && offset > 0)
    findings.lost(name, `its RandomizedOffsetSec ${one("RandomizedOffsetSec")}, since it has a RandomizedDelaySec too`);
  const stays = delay > 0 ? isTrue(one("FixedRandomDelay")) : offset > 0;
  return { jitter: delay > 0 ? delay : offset, ...(stays && { jitterBy: "task" }) };
}

/** systemd skips a local time that does not exist and starts at the first of two equal local times, as `systemd-analyze calendar` shows. */
const clockChanges = { gap: "skip", overlap: "first" };

interface Made {
  schedule: Row;
  times: SourceTimes;
  periodMs?: number;
}

/** @returns the number of the timer's schedules that name no zone */
function addTimer(
  name: string,
  unit: Unit,
  units: ReadonlyMap<string, Unit>,
  options: ImportOptions,
  findings: Findings,
): number {
  const timer = unit.get("Timer") ?? new Map<string, string[]>();
  const one = (field: string) => timer.get(field)?.at(-1) ?? "";
  tellFields(
    Object.fromEntries([...timer].map(([field, values]) => [field, values.join(" ")])),
    timerFields,
    name,
    findings,
  );
  const service = one("Unit") || `${name}.service`;
  const description = one("Description") || unit.get("Unit")?.get("Description")?.at(-1);
  const shared = {
    description,
    group: options.group,
    // systemd does not start a unit that is already active.
    overlap: "skip",
    misfire: { policy: isTrue(one("Persistent")) ? "fire_once" : "skip" },
    ...workOf(service, units.get(service)?.get("Service"), name, findings),
  };
  const spread = spreadOf(one, name, findings);
  const schedules = schedulesOf(timer, options.zone, name, findings);
  for (const [at, { schedule, times, periodMs }] of schedules.made.entries()) {
    const source = schedules.made.length === 1 ? name : `${name}-${at + 1}`;
    const { jitter: most, ...by } = spread;
    const jitter = most > 0 && schedule.mode !== "delay" ? { jitter: Math.min(most, periodMs ?? most), ...by } : {};
    findings.add(
      source,
      source,
      { ...shared, schedule: { ...schedule, ...jitter } },
      { comment: `started ${service}`, times },
    );
  }
  return schedules.unzoned;
}

function schedulesOf(timer: ReadonlyMap<string, string[]>, zone: string, name: string, findings: Findings) {
  const made: Made[] = [];
  let unzoned = 0;
  for (const text of timer.get("OnCalendar") ?? []) {
    const found = cronOfCalendar(text);
    if (found === undefined) {
      findings.problem(
        name,
        `its OnCalendar ${text} is not understood, or no cron has its days`,
        "Write its schedule by hand; systemd-analyze calendar says what it means.",
      );
      continue;
    }
    if (found.zone === null) unzoned++;
    made.push({
      schedule: { cron: found.cron, zone: found.zone ?? zone, ...clockChanges },
      times: { dialect: "systemd", text, zone },
    });
  }
  for (const [field, mode] of [
    ["OnUnitActiveSec", "rate"],
    ["OnUnitInactiveSec", "delay"],
  ] as const)
    for (const text of timer.get(field) ?? []) {
      const everyMs = spanMs(text);
      if (everyMs === undefined)
        findings.problem(name, `its ${field} ${text} has no fixed length`, "Write its schedule by hand.");
      else if (mode === "rate")
        made.push({ schedule: { every: everyMs }, times: { dialect: "interval", everyMs }, periodMs: everyMs });
      else made.push({ schedule: { every: everyMs, mode }, times: { dialect: "delay", everyMs } });
    }
  const starts = ["OnBootSec", "OnStartupSec", "OnActiveSec"].filter((field) => (timer.get(field) ?? []).length > 0);
  if (starts.length > 0 && made.length > 0)
    findings.lost(name, `its ${starts.join(" and ")}: the first run after a start`);
  else if (starts.length > 0)
    findings.problem(
      name,
      `${starts.join(" and ")} count from a start of the machine, which is no time`,
      "Keep the timer, or run the task from your start-up.",
    );
  return { made, unzoned };
}

/** Returns the service's program as a command, and its timeout. Settings of the service that cannot be imported are reported as lost. */
function workOf(
  service: string,
  values: ReadonlyMap<string, string[]> | undefined,
  source: string,
  findings: Findings,
): Row {
  if (values === undefined) {
    findings.lost(source, `what it runs: ${service} is not in these files`, "Give both, or the task a command.");
    return {};
  }
  const one = (field: string) => values.get(field)?.at(-1) ?? "";
  const left = [...values].filter(
    ([field, said]) => said.length > 0 && (serviceFields.get(field)?.fate ?? "lost") === "lost",
  );
  if (left.length > 0)
    findings.lost(
      source,
      `of ${service}: ${left.map(([field]) => field).join(", ")}`,
      "A worker gives a command its account, environment and timeout alone.",
    );
  const lines = values.get("ExecStart") ?? [];
  const argv = lines.length === 1 ? wordsOf(lines[0] as string) : undefined;
  if (argv === undefined || argv.length === 0)
    findings.lost(
      source,
      `its ExecStart ${lines.join(" and ")}, which is no single command`,
      "Give the task a command: { argv: […] }.",
    );
  else findings.note(source, `runs ${argv[0]}`, `A worker must allow it: --allow ${argv[0]}.`);
  if (argv?.some((word) => /\$\{?[A-Z_]/i.test(word)))
    findings.lost(source, "variables in its ExecStart are not replaced here", "Read them in the program.");
  const env = Object.fromEntries(
    (values.get("Environment") ?? [])
      .flatMap((line) => wordsOf(line) ?? [])
      .map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)]),
  );
  const limit = one("TimeoutStartSec") || one("TimeoutSec");
  const timeoutMs = limit === "" ? undefined : spanMs(limit);
  const [cwd, user] = [one("WorkingDirectory").replace(/^-/, ""), one("User")];
  const command = {
    argv,
    ...(Object.keys(env).length > 0 ? { env } : {}),
    ...(cwd === "" ? {} : { cwd }),
    ...(user === "" ? {} : { user }),
  };
  return {
    command: argv === undefined || argv.length === 0 ? undefined : command,
    timeout: timeoutMs !== undefined && timeoutMs > 0 ? timeoutMs : undefined,
  };
}
