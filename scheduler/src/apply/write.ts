import { Document, isMap, isScalar, type Pair, Scalar, type YAMLMap } from "yaml";
import { itemKinds } from "../task/applied-store.ts";
import type { WrittenTask } from "../task/written.ts";
import type { GivenItem } from "./plan-items.ts";
import { itemParts } from "./read.ts";

export interface ToWrite {
  name: string;
  written: WrittenTask;
  /** A comment that is written above the task. */
  comment?: string;
}

/**
 * Writes tasks, alarm rules and hooks as YAML in the format that `read.ts` reads.
 * @param comment text at the top of the file
 */
export function writeYaml(
  tasks: readonly ToWrite[],
  bundle: string | null,
  comment = "",
  items: readonly GivenItem[] = [],
): string {
  const document = new Document({
    ...(bundle === null ? {} : { bundle }),
    // A Map keeps the order of the tasks, even if names are numbers.
    tasks: new Map(tasks.map(({ name, written }) => [name, written])),
    ...itemsWritten(items),
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

/** Returns the parts of a file that hold alarm rules and hooks; a part without any is left out. */
export function itemsWritten(items: readonly GivenItem[]): Record<string, Map<string, GivenItem["content"]>> {
  return Object.fromEntries(
    itemKinds.flatMap((item) => {
      const some = items.filter((one) => one.item === item);
      return some.length > 0 ? [[itemParts[item], new Map(some.map(({ name, content }) => [name, content]))]] : [];
    }),
  );
}

/** Formats a text as a YAML comment; line breaks and control characters in it cannot end the comment. */
const commented = (text: string) =>
  text
    .split(/[\r\n\u0085\u2028\u2029]+/)
    .map((line) => ` ${line.replace(/\p{Cc}/gu, "\uFFFD")}`)
    .join("\n");
