import { existsSync } from "node:fs";
import { cronOfPhrase } from "../cron-phrase.ts";
import { CarillonError, isCarillonError } from "../errors.ts";
import { compileSchedule, cron, nextSlots, type ScheduleSpec } from "../schedule.ts";
import { zoneOf } from "../zone.ts";
import { type ExitCode, exitCodes } from "./exit-codes.ts";
import type { CommonOptions } from "./store-choice.ts";
import type { Terminal } from "./terminal.ts";
import { localZone, timeText } from "./times.ts";

export interface CronOptions extends CommonOptions {
  zone?: string;
  count: number;
}

/** A cron is put into words, words into a cron; either way with what it means next. */
export async function cronWords(words: string[], options: CronOptions, terminal: Terminal): Promise<ExitCode> {
  const spec = specOf(words, options.zone ?? localZone().name);
  const zone = zoneOf(spec.zone);
  const next = nextSlots(spec, Date.now(), options.count);
  const said = compileSchedule(spec).words();
  if (terminal.json) {
    terminal.object({
      cron: spec.expression,
      zone: spec.zone,
      words: said,
      next: next.map((ms) => new Date(ms).toISOString()),
    });
    return exitCodes.ok;
  }
  terminal.line(terminal.style.title(spec.expression));
  terminal.line(`  ${said}`);
  for (const ms of next) terminal.line(`  ${terminal.style.dim(timeText(ms, zone))}`);
  return exitCodes.ok;
}

function specOf(words: string[], zone: string): ScheduleSpec & { type: "cron" } {
  const text = words.join(" ").trim();
  try {
    const found = isCron(text) ? { expression: text, zone: null } : cronOfPhrase(text);
    return cron(found.expression, { zone: found.zone ?? zone }) as ScheduleSpec & { type: "cron" };
  } catch (cause) {
    if (words.length === 1 || !isCarillonError(cause, "CRON_INVALID") || !words.some((word) => existsSync(word)))
      throw cause;
    throw new CarillonError(cause.code, cause.message, {
      hint: 'There are names of files in it: the shell puts them where a * stands. Quote it: carillon cron "0 9 * * 1-5".',
      cause,
    });
  }
}

/** "@daily", or five to seven fields of what stands in fields: no word of English is a month or a day in all of them. */
const isCron = (text: string): boolean => {
  const fields = text.split(/\s+/);
  return (
    text.startsWith("@") ||
    (fields.length >= 5 &&
      fields.length <= 7 &&
      /^[\d*?]/.test(text) &&
      !/\b(?:at|on|of|in|every|and|to)\b/i.test(text))
  );
};
