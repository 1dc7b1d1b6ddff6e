/** Generates docs/reference/importing-fields.md from the field tables of the importers. A test checks that the page is up to date. */
import type { FieldTable } from "./fields.ts";
import { graphileFields } from "./graphile.ts";
import { eventbridgeFields, targetFields } from "./hosted/eventbridge.ts";
import { scheduleFields, workflowFields } from "./hosted/github-actions.ts";
import { vercelFields } from "./hosted/vercel.ts";
import { apschedulerFields } from "./python/apscheduler.ts";
import { periodicTaskFields } from "./python/celery-beat.ts";
import { sidekiqFields } from "./ruby/sidekiq-cron.ts";
import { solidQueueFields } from "./ruby/solid-queue.ts";
import { dkronFields } from "./servers/dkron.ts";
import { jenkinsFields } from "./servers/jenkins.ts";
import { powerFields } from "./servers/powerjob.ts";
import { rundeckFields } from "./servers/rundeck.ts";
import { serviceFields, timerFields } from "./systemd/timers.ts";

/** The field tables, each under its heading on the page. */
export const fieldTables: ReadonlyMap<string, FieldTable> = new Map([
  ["`solid-queue`: an entry of recurring.yml", solidQueueFields],
  ["`sidekiq-cron`: an entry of schedule.yml", sidekiqFields],
  ["`vercel`: an entry of crons", vercelFields],
  ["`github-actions`: a workflow", workflowFields],
  ["`github-actions`: an entry of on.schedule", scheduleFields],
  ["`eventbridge`: a schedule", eventbridgeFields],
  ["`eventbridge`: its Target", targetFields],
  ["`systemd`: the section Timer", timerFields],
  ["`systemd`: the section Service", serviceFields],
  ["`celery`: a periodic task", periodicTaskFields],
  ["`apscheduler`: an entry", apschedulerFields],
  ["`graphile`: the options of a line", graphileFields],
  ["`dkron`: an entry", dkronFields],
  ["`powerjob`: a row", powerFields],
  ["`rundeck`: an entry", rundeckFields],
  ["`jenkins`: a project", jenkinsFields],
]);

const head = `# Fields of other schedulers

What happens to each field that [\`carillon import\`](importing.md) reads. *Carried* fields become what the last column says; *lost* fields are
reported if they have a value; *unused* fields say nothing about when or what a task runs. A field that is not listed is reported as
lost. This page is made from the importers' tables: \`npm run build && node scripts/import-fields.mjs\`.
`;

export function fieldsPage(): string {
  const parts = [...fieldTables].map(([title, table]) => {
    const rows = [...table.values()].map(
      ({ name, fate, meaning, hint }) =>
        `| \`${name}\` | ${fate} | ${[meaning, hint].filter((text) => text !== "").join(". ")} |`,
    );
    return `## ${title}\n\n| field | fate | meaning |\n|---|---|---|\n${rows.join("\n")}\n`;
  });
  return [head, ...parts].join("\n");
}
