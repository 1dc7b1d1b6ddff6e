/** Imports Sidekiq-cron's config/schedule.yml: a map from names to entries, or a list of entries that contain their names. */
import { yamlDocuments } from "../../apply/yaml-documents.ts";
import { fieldTable, saysNothing, tellFields, tellHandlers, tellZone } from "../fields.ts";
import { Findings, type ImportOptions, type Row, rowsOf, type SourceFile, textOf } from "../findings.ts";
import { readRailsYaml, tasksOfSections } from "../sections.ts";
import { rubySchedule } from "./fugit.ts";

export const sidekiqFields = fieldTable(`
name | carried | the task's name, in the form of a list |
cron | carried | schedule: a cron or a phrase, with a zone at its end |
class | carried | named in the remark above the task, whose handler takes its place |
klass | carried | as class |
queue | carried | group |
args | carried | slotPayload |
description | carried | description |
status | carried | disabled: imported without its schedule |
active_job | unused | how the class is called |
symbolize_args | unused | how the class is called |
source | unused | where the entry came from |
queue_name_prefix | lost | a part of the queue's name | Set group by hand.
queue_name_delimiter | lost | a part of the queue's name | Set group by hand.
date_as_argument | lost | the time of the run as an argument | A handler has it as run.slot.
namespace | lost | the same name may be in two of them | Give the task a group, or the file a bundle.
retry | lost | how often Sidekiq tries again | Set retry by hand.
`);

const isEntry = (row: Row): boolean => "cron" in row;

export function importSidekiqCron(files: readonly SourceFile[], options: ImportOptions): Findings {
  const findings = new Findings(options);
  const [handlers, unzoned] = [new Set<string>(), new Set<string>()];
  for (const file of files) {
    const rows = entriesOf(file, findings);
    if (rows?.length === 0)
      findings.note("", `${file.path} has no entries`, "It is read as Sidekiq-cron's config/schedule.yml.");
    for (const [name, row] of rows ?? []) {
      const text = textOf(row.cron);
      const made = rubySchedule(name, text, options.zone, file, findings);
      if (made === undefined) continue;
      tellFields(row, sidekiqFields, name, findings);
      const added = findings.add(
        name,
        name,
        {
          description: textOf(row.description) || undefined,
          group: options.group ?? (textOf(row.queue) || undefined),
          schedule: made.schedule,
          slotPayload: saysNothing(row.args) ? undefined : row.args,
          // Sidekiq-cron's poller still starts a slot that is up to one minute late.
          misfire: { policy: "skip", after: "1m" },
        },
        {
          comment: `ran the Ruby class ${textOf(row.class ?? row.klass)}`,
          suspended: textOf(row.status) === "disabled",
          times: { dialect: "fugit", text, zone: options.zone },
        },
      );
      if (added === undefined) continue;
      handlers.add(added);
      if (!made.isZoned) unzoned.add(added);
    }
  }
  tellHandlers(handlers.size, "Ruby classes", findings);
  tellZone(unzoned.size, options.zone, "It is the zone of the Sidekiq process", findings);
  return findings;
}

function entriesOf(file: SourceFile, findings: Findings): [string, Row][] | undefined {
  const [read] = yamlDocuments(file.text);
  if (read && "content" in read && Array.isArray(read.content))
    return rowsOf(read.content).map((row) => [textOf(row.name), row]);
  const content = readRailsYaml(file, findings);
  return content && tasksOfSections(content, isEntry, file.path, findings);
}
