/** Imports graphile-worker's crontab file, whose times are in UTC. */
import { yamlDocuments } from "../apply/yaml-documents.ts";
import { eitherDay } from "./either-day.ts";
import { fieldTable, tellFields, tellHandlers } from "./fields.ts";
import { Findings, type ImportOptions, numberOf, type Row, type SourceFile, textOf } from "./findings.ts";

export const graphileFields = fieldTable(`
id | carried | the task's name; without it the identifier |
fill | carried | misfire: all, of the newest 100; its length is told |
max | carried | retry: the number of tries |
queue | lost | items of one queue run one by one | Set overlap: queue.
priority | lost | the smallest is the first there, 9 is here | Set priority by hand.
jobKey | lost | at most one item of a key waits | Set overlap: queue.
jobKeyMode | lost | what a later item of a key does | Set overlap: queue.
`);

/** The retry options that approximate graphile-worker's delay of e^n seconds after attempt n, where n is at most ten. */
const pauses = { backoff: "exponential", delay: "3s", maxDelay: "6h" };

export function importGraphile(files: readonly SourceFile[], options: ImportOptions): Findings {
  const findings = new Findings(options);
  const handlers = new Set<string>();
  let untold = 0;
  for (const { path, text } of files)
    for (const [at, line] of text.split(/\r?\n/).entries()) {
      const trimmed = line.trim();
      if (trimmed === "" || trimmed.startsWith("#")) continue;
      const source = `${path}:${at + 1}`;
      const [, cron = "", identifier = "", query = "", payload = ""] =
        /^((?:\S+\s+){4}\S+)\s+([A-Za-z_][\w:./-]*)(?:\s+\?(\S*))?(?:\s+(\{.*\}))?$/.exec(trimmed) ?? [];
      if (identifier === "") {
        findings.problem(
          source,
          "is no line of graphile-worker's crontab",
          "Five time fields, a task, ?options and {payload}.",
        );
        continue;
      }
      const said: Row = Object.fromEntries(new URLSearchParams(query));
      const name = textOf(said.id) || identifier;
      tellFields(said, graphileFields, name, findings);
      const fill = textOf(said.fill);
      if (fill !== "")
        findings.note(
          name,
          `makes up for what it missed within ${fill}; here it is the newest 100`,
          "misfire has cap and perSecond.",
        );
      const most = numberOf(said.max);
      if (most === undefined) untold++;
      const data = payloadOf(payload, name, findings);
      if (data === null) continue;
      const added = findings.add(
        name,
        name,
        {
          group: options.group,
          schedule: { cron: eitherDay(cron), zone: options.zone },
          slotPayload: data,
          misfire: { policy: fill === "" ? "skip" : "all" },
          retry: { attempts: most ?? usualTries, ...pauses },
        },
        { comment: `ran the task ${identifier}`, times: { dialect: "cron-parser", text: cron, zone: options.zone } },
      );
      if (added !== undefined && added !== identifier) handlers.add(added);
    }
  tellHandlers(handlers.size, "tasks of another name", findings);
  if (untold > 0) findings.note("", `${untold} without max are given ${usualTries} tries, graphile-worker's default`);
  return findings;
}

const usualTries = 25;

/**
 * Parses the JSON5 payload of a line with the YAML parser, which accepts the common forms of JSON5.
 * @returns null if a problem was reported; undefined if the text is empty
 */
function payloadOf(text: string, source: string, findings: Findings): unknown {
  if (text === "") return undefined;
  const [read] = yamlDocuments(text);
  if (read && "content" in read) return read.content;
  findings.problem(source, `its payload ${text} is not understood`, "Write it as JSON.");
  return null;
}
