/** Imports the `crons` of vercel.json, each of which requests a path of the deployment. */
import { fieldTable, tellFields } from "../fields.ts";
import { Findings, type ImportOptions, isRow, readJson, rowsOf, type SourceFile, textOf } from "../findings.ts";

export const vercelFields = fieldTable(`
path | carried | the task's name, and in the remark above it |
schedule | carried | schedule, in UTC |
`);

export function importVercel(files: readonly SourceFile[], options: ImportOptions): Findings {
  const findings = new Findings(options);
  let count = 0;
  for (const file of files) {
    const content = readJson(file, findings);
    if (content === undefined) continue;
    const rows = rowsOf(isRow(content) ? content.crons : content);
    if (rows.length === 0) findings.note("", `${file.path} has no crons`, "It is read as vercel.json.");
    for (const row of rows) {
      const [path, text] = [textOf(row.path), textOf(row.schedule)];
      tellFields(row, vercelFields, path, findings);
      const added = findings.add(
        path,
        path.replace(/^\/+/, "").replace(/[?&=]+/g, "-"),
        {
          group: options.group,
          schedule: { cron: text, zone: options.zone },
          misfire: { policy: "skip" },
        },
        { comment: `requested GET ${path} of the deployment`, times: { dialect: "vixie", text, zone: options.zone } },
      );
      if (added !== undefined) count++;
    }
  }
  if (count > 0)
    findings.lost(
      "",
      `the deployment of ${count} ${count === 1 ? "path" : "paths"}: vercel.json does not name its host`,
      'Give each task http: { url: "https://HOST/PATH", method: GET }, and CRON_SECRET as a secret: headers: { authorization: "Bearer {{secret:CRON_SECRET}}" }.',
    );
  return findings;
}
