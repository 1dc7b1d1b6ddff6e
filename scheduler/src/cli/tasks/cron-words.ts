import { existsSync } from "node:fs";
import { CarillonError, isCarillonError } from "../../base/errors.ts";
import { scheduleOfText } from "../../schedule/phrase/schedule-text.ts";
import { compileSchedule, nextSlots, type ScheduleSpec } from "../../schedule/schedule.ts";
import { writtenSchedule } from "../../task/kinds/schedule.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import type { Terminal } from "../screen/terminal.ts";
import { localZone, timeText, zoneOfSpec } from "../screen/times.ts";
import type { CommonOptions } from "../store-choice.ts";

export interface CronOptions extends CommonOptions {
  zone?: string;
  /** The task's name, from which the value of an `H` in a cron expression is derived. */
  name?: string;
  count: number;
}

/** Describes a schedule in words, or converts words to a schedule; prints the next slots in both cases. */
export async function cronWords(words: string[], options: CronOptions, terminal: Terminal): Promise<ExitCode> {
  const spec = specOf(words, options);
  const zone = zoneOfSpec(spec);
  const next = nextSlots(spec, Date.now(), options.count);
  const said = compileSchedule(spec).words();
  if (terminal.json) {
    terminal.object({
      ...(spec.type === "cron" ? { cron: spec.expression } : { schedule: writtenSchedule(spec) }),
      zone: zone.name,
      words: said,
      next: next.map((ms) => new Date(ms).toISOString()),
    });
    return exitCodes.ok;
  }
  terminal.line(terminal.style.title(spec.type === "cron" ? spec.expression : JSON.stringify(writtenSchedule(spec))));
  terminal.line(`  ${said}`);
  for (const ms of next) terminal.line(`  ${terminal.style.dim(timeText(ms, zone))}`);
  return exitCodes.ok;
}

function specOf(words: string[], { zone = localZone().name, name }: CronOptions): ScheduleSpec {
  const text = words.join(" ").trim();
  try {
    return scheduleOfText(text, { zone, name });
  } catch (cause) {
    if (words.length === 1 || !isCarillonError(cause, "CRON_INVALID") || !words.some((word) => existsSync(word)))
      throw cause;
    throw new CarillonError(cause.code, cause.message, {
      hint: 'There are names of files in it: the shell puts them where a * stands. Quote it: carillon cron "0 9 * * 1-5".',
      cause,
    });
  }
}
