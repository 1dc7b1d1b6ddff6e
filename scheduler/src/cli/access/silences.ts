import type { Silence } from "../../alarms/alarm-store.ts";
import { wordsOfRule } from "../../alarms/alarms.ts";
import { isoTime } from "../../api/run-json.ts";
import { CarillonError } from "../../base/errors.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { withCluster } from "../reach.ts";
import type { Terminal } from "../screen/terminal.ts";
import { plain } from "../screen/text.ts";
import { ageText } from "../screen/times.ts";
import type { CommonOptions } from "../store-choice.ts";

export interface AboutOptions extends CommonOptions {
  task?: string;
  reason?: string;
}

const silenceObject = ({ silenceId, fromMs, untilMs, author, ...rest }: Silence) => ({
  silence: silenceId,
  ...rest,
  by: author,
  from: isoTime(fromMs),
  until: isoTime(untilMs),
});

const aboutText = ({ rule, task }: { rule: string | null; task: string | null }): string =>
  `${rule === null ? "every rule" : plain(wordsOfRule(rule))}${task === null ? "" : `, task ${plain(task)}`}`;

export function acknowledge(rule: string, options: AboutOptions, terminal: Terminal): Promise<ExitCode> {
  return withCluster(options, async ({ cluster }) => {
    const acknowledged = await cluster.alarms.acknowledge(rule, options.task ?? null, options.reason ?? "");
    if (terminal.json) terminal.object({ rule, task: options.task ?? null, acknowledged });
    else
      terminal.line(
        `${acknowledged} open ${acknowledged === 1 ? "alarm is" : "alarms are"} known: ${plain(wordsOfRule(rule))}`,
      );
    return exitCodes.ok;
  });
}

export function silence(
  rule: string | undefined,
  options: AboutOptions & { for: string },
  terminal: Terminal,
): Promise<ExitCode> {
  if (rule === undefined && options.task === undefined)
    throw new CarillonError("USAGE", "neither a rule nor a task was given, so nothing at all would be told", {
      hint: "Give a rule, such as late, or --task NAME; to tell nobody anything, take --alarms from the nodes.",
    });
  return withCluster(options, async ({ cluster }) => {
    const { task = null, reason = "" } = options;
    const made = await cluster.alarms.silence(rule ?? null, task, options.for, reason);
    if (terminal.json) terminal.object(silenceObject(made));
    else terminal.line(`silence ${made.silenceId}: ${aboutText(made)}, until ${isoTime(made.untilMs)}`);
    return exitCodes.ok;
  });
}

export function listSilences(options: CommonOptions, terminal: Terminal): Promise<ExitCode> {
  return withCluster(options, async ({ cluster }) => {
    const silences = await cluster.alarms.silences();
    const now = cluster.nowMs();
    if (terminal.json) terminal.object(silences.map(silenceObject));
    else if (silences.length === 0) terminal.aside("Nothing is silenced.");
    else
      terminal.table(
        [
          { title: "SILENCE", align: "right" },
          { title: "ALARM", least: 12 },
          { title: "TASK", least: 8 },
          { title: "ENDS" },
          { title: "BY", drop: 1 },
          { title: "", least: 12, drop: 2 },
        ],
        silences.map(({ silenceId, rule, task, untilMs, author, reason }) => [
          String(silenceId),
          rule === null ? "any" : plain(wordsOfRule(rule)),
          task === null ? "any" : plain(task),
          ageText(untilMs, now),
          plain(author),
          plain(reason),
        ]),
      );
    return exitCodes.ok;
  });
}

export function endSilences(
  numbers: number[],
  options: CommonOptions & { reason?: string },
  terminal: Terminal,
): Promise<ExitCode> {
  return withCluster(options, async ({ cluster }) => {
    for (const number of numbers) {
      await cluster.alarms.unsilence(number, options.reason ?? "");
      if (!terminal.json) terminal.line(`silence ${number} has ended`);
    }
    if (terminal.json) terminal.object({ ended: numbers });
    return exitCodes.ok;
  });
}
