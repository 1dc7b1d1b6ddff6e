import { Document, isMap, isScalar, type Pair, Scalar, type YAMLMap } from "yaml";
import type { WrittenTask } from "../task/written.ts";

export interface ToWrite {
  name: string;
  written: WrittenTask;
  /** A comment that is written above the task. */
  comment?: string;
}

/** Writes tasks as YAML in the format that `read.ts` reads. @param comment text at the top of the file */
export function writeYaml(tasks: readonly ToWrite[], bundle: string | null, comment = ""): string {
  const document = new Document({
    ...(bundle === null ? {} : { bundle }),
    // A Map keeps the order of the tasks, even if names are numbers.
    tasks: new Map(tasks.map(({ name, written }) => [name, written])),
  });
  if (comment !== "") document.commentBefore = commented(comment);
  const map = document.get("tasks") as YAMLMap;
  if (isMap(map) && map.items.length === 0) map.flow = true;
  for (const [at, pair] of (map.items as Pair<Scalar, YAMLMap>[]).entries()) {
    const { comment: above } = tasks[at] as ToWrite;
    if (above) pair.key.commentBefore = commented(above);
    if (at > 0) pair.key.spaceBefore = true;
    const schedule = isMap(pair.value) ? pair.value.get("schedule", true) : undefined;
    // Write the schedule on one line, and quote a cron expression, because stars without quotes look like YAML aliases.
    if (isMap(schedule)) {
      schedule.flow = true;
      const cron = schedule.get("cron", true);
      if (isScalar(cron)) cron.type = Scalar.QUOTE_DOUBLE;
    }
  }
  return document.toString({ lineWidth: 120 });
}

/** Formats a text as a YAML comment; line breaks and control characters in it cannot end the comment. */
const commented = (text: string) =>
  text
    .split(/[\r\n\u0085\u2028\u2029]+/)
    .map((line) => ` ${line.replace(/\p{Cc}/gu, "\uFFFD")}`)
    .join("\n");
