/** Imports Solid Queue's config/recurring.yml. */
import { fieldTable, saysNothing, tellFields, tellHandlers, tellZone } from "../fields.ts";
import { Findings, type ImportOptions, type Row, type SourceFile, textOf } from "../findings.ts";
import { readRailsYaml, tasksOfSections } from "../sections.ts";
import { rubySchedule } from "./fugit.ts";

export const solidQueueFields = fieldTable(`
class | carried | named in the remark above the task, whose handler takes its place |
command | lost | it is Ruby code | Give the task a command: { argv: ["/srv/app/bin/rails", "runner", "CODE"] }.
args | carried | slotPayload |
schedule | carried | schedule: a cron or a phrase, with a zone at its end |
queue | carried | group |
priority | lost | the smallest is the first there, 9 is here | Set priority by hand.
description | carried | description |
`);

export function importSolidQueue(files: readonly SourceFile[], options: ImportOptions): Findings {
  const findings = new Findings(options);
  const counts = { handlers: 0, unzoned: 0 };
  for (const file of files) {
    const content = readRailsYaml(file, findings);
    if (content === undefined) continue;
    const rows = tasksOfSections(content, (row) => "schedule" in row, file.path, findings);
    if (rows.length === 0)
      findings.note("", `${file.path} has no recurring tasks`, "It is read as Solid Queue's config/recurring.yml.");
    for (const [name, row] of rows) addRecurring(name, row, { file, options, findings, counts });
  }
  tellHandlers(counts.handlers, "Ruby classes", findings);
  tellZone(counts.unzoned, options.zone, "It is config.time_zone of the Rails application", findings);
  return findings;
}

interface Place {
  file: SourceFile;
  options: ImportOptions;
  findings: Findings;
  counts: { handlers: number; unzoned: number };
}

function addRecurring(name: string, row: Row, { file, options, findings, counts }: Place): void {
  const text = textOf(row.schedule);
  const made = rubySchedule(name, text, options.zone, file, findings);
  if (made === undefined) return;
  const className = textOf(row.class);
  tellFields(row, solidQueueFields, name, findings);
  findings.add(
    name,
    name,
    {
      description: textOf(row.description) || undefined,
      group: options.group ?? (textOf(row.queue) || undefined),
      schedule: made.schedule,
      slotPayload: saysNothing(row.args) ? undefined : row.args,
      // Solid Queue skips the slots that were due while no scheduler process ran.
      misfire: { policy: "skip" },
    },
    {
      comment: className === "" ? `ran the Ruby code ${textOf(row.command)}` : `ran the Ruby class ${className}`,
      times: { dialect: "fugit", text, zone: options.zone },
    },
  );
  if (className !== "") counts.handlers++;
  if (!made.isZoned) counts.unzoned++;
}
