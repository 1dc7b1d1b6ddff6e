/** Imports the `on.schedule` entries of GitHub Actions workflow files. */
import { basename } from "node:path";
import { yamlDocuments } from "../../apply/yaml-documents.ts";
import { fieldTable, tellFields, tellZone } from "../fields.ts";
import { Findings, type ImportOptions, isRow, type Row, rowsOf, type SourceFile, textOf, within } from "../findings.ts";

export const workflowFields = fieldTable(`
name | carried | the task's name; without it the file's |
on | carried | schedule; its other events are told |
run-name | unused | the title of a run |
jobs | lost | its steps run at GitHub | Give the task http: { url: "https://api.github.com/repos/OWNER/REPOSITORY/actions/workflows/FILE/dispatches", body: { ref: main } } and the workflow workflow_dispatch, or a worker a handler.
env | lost | its steps' environment | Set it where the worker runs.
defaults | lost | its steps' shell and folder |
permissions | lost | what its token may do |
concurrency | lost | whether runs overlap | Set overlap: queue or replace.
`);

export const scheduleFields = fieldTable(`
cron | carried | schedule |
timezone | carried | the schedule's zone |
`);

export function importGithubActions(files: readonly SourceFile[], options: ImportOptions): Findings {
  const findings = new Findings(options);
  let unzoned = 0;
  for (const { path, text } of files) {
    for (const read of yamlDocuments(text)) {
      if ("problem" in read) {
        findings.problem("", `${path} is not YAML: ${read.problem}`, "Give files of .github/workflows.");
        continue;
      }
      if (isRow(read.content)) unzoned += addWorkflow(path, read.content, options, findings);
    }
  }
  tellZone(unzoned, options.zone, "GitHub counts in UTC where a schedule has no timezone", findings);
  return findings;
}

/** Adds a task for each of the workflow's schedules. @returns the number of schedules that name no zone */
function addWorkflow(path: string, content: Row, options: ImportOptions, findings: Findings): number {
  const own = textOf(content.name) || basename(path).replace(/\.ya?ml$/i, "");
  const events = content.on;
  const rows = rowsOf(within(events, "schedule"));
  if (rows.length === 0) {
    findings.note(path, "has no on.schedule, and was passed over");
    return 0;
  }
  tellFields(content, workflowFields, own, findings);
  const others = isRow(events)
    ? Object.keys(events).filter((name) => !/^(?:schedule|workflow_dispatch)$/.test(name))
    : [];
  if (others.length > 0) findings.lost(own, `it also runs on ${others.join(", ")}`, "Such events stay at GitHub.");
  let unzoned = 0;
  for (const [at, row] of rows.entries()) {
    const source = rows.length === 1 ? own : `${own}-${at + 1}`;
    const [cron, zone] = [textOf(row.cron), textOf(row.timezone)];
    tellFields(row, scheduleFields, source, findings, "on.schedule");
    if (zone === "") unzoned++;
    findings.add(
      source,
      source.replace(/\s+/g, "-"),
      {
        description: own,
        group: options.group,
        schedule: { cron, zone: zone || options.zone },
        misfire: { policy: "skip" },
      },
      { comment: `ran the workflow ${path}`, times: { dialect: "vixie", text: cron, zone: zone || options.zone } },
    );
  }
  return unzoned;
}
