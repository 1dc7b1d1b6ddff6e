import { Document, isMap, isScalar, type Pair, Scalar, type YAMLMap } from "yaml";
import type { WrittenTask } from "../task/written.ts";

export interface ToWrite {
  name: string;
  written: WrittenTask;
  /** Lines above the task. */
  comment?: string;
}

/** A file of tasks, as `read.ts` reads it. @param comment lines above everything */
export function writeYaml(tasks: readonly ToWrite[], bundle: string | null, comment = ""): string {
  const document = new Document({
    ...(bundle === null ? {} : { bundle }),
    // A map keeps their order, also of names that are numbers.
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
    // The schedule goes on one line, like a sentence; a cron's stars are in quotes, so that they do not look like aliases.
    if (isMap(schedule)) {
      schedule.flow = true;
      const cron = schedule.get("cron", true);
      if (isScalar(cron)) cron.type = Scalar.QUOTE_DOUBLE;
    }
  }
  return document.toString({ lineWidth: 120 });
}

/** The text as a comment: nothing in it can end the comment. */
const commented = (text: string) =>
  text
    .split(/[\r\n\u0085\u2028\u2029]+/)
    .map((line) => ` ${line.replace(/\p{Cc}/gu, "\uFFFD")}`)
    .join("\n");
