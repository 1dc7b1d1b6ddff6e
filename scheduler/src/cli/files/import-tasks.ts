import { importBullmq } from "../../importers/bullmq.ts";
import type { Findings, ImportOptions, SourceFile } from "../../importers/findings.ts";
import { importGraphile } from "../../importers/graphile.ts";
import { importEventbridge } from "../../importers/hosted/eventbridge.ts";
import { importGithubActions } from "../../importers/hosted/github-actions.ts";
import { importVercel } from "../../importers/hosted/vercel.ts";
import { importKubernetes } from "../../importers/kubernetes.ts";
import { importPgBoss } from "../../importers/pg-boss.ts";
import { importApscheduler } from "../../importers/python/apscheduler.ts";
import { importCelery } from "../../importers/python/celery-beat.ts";
import { importQuartz } from "../../importers/quartz.ts";
import { importSidekiqCron } from "../../importers/ruby/sidekiq-cron.ts";
import { importSolidQueue } from "../../importers/ruby/solid-queue.ts";
import { importDkron } from "../../importers/servers/dkron.ts";
import { importJenkins } from "../../importers/servers/jenkins.ts";
import { importPowerjob } from "../../importers/servers/powerjob.ts";
import { importRundeck } from "../../importers/servers/rundeck.ts";
import { importSystemd } from "../../importers/systemd/timers.ts";
import { fromXxl } from "../../importers/xxl-job.ts";
import { zoneName } from "../../schedule/zone.ts";
import type { ExitCode } from "../exit-codes.ts";
import type { Terminal } from "../screen/terminal.ts";
import { localZone } from "../screen/times.ts";
import type { CommonOptions } from "../store-choice.ts";
import { compareImported } from "./compare-imported.ts";
import { writeImported } from "./import-report.ts";
import type { imports } from "./imports.ts";
import { textOfFile } from "./read-tasks.ts";

type Importer = (files: readonly SourceFile[], options: ImportOptions) => Findings;

const utc = () => "UTC";
const local = () => localZone().name;

/**
 * The importer of each source, and the zone for crons that name none: UTC if the source uses UTC, else this machine's zone, on the
 * assumption that the source runs in the same zone.
 */
const importers: Record<keyof typeof imports, { from: Importer; zone: () => string }> = {
  quartz: { from: importQuartz, zone: local },
  "xxl-job": { from: fromXxl, zone: local },
  kubernetes: { from: importKubernetes, zone: utc },
  bullmq: { from: importBullmq, zone: local },
  "pg-boss": { from: importPgBoss, zone: utc },
  "solid-queue": { from: importSolidQueue, zone: utc },
  "sidekiq-cron": { from: importSidekiqCron, zone: utc },
  vercel: { from: importVercel, zone: utc },
  "github-actions": { from: importGithubActions, zone: utc },
  eventbridge: { from: importEventbridge, zone: utc },
  systemd: { from: importSystemd, zone: local },
  celery: { from: importCelery, zone: utc },
  graphile: { from: importGraphile, zone: utc },
  apscheduler: { from: importApscheduler, zone: local },
  dkron: { from: importDkron, zone: local },
  powerjob: { from: importPowerjob, zone: local },
  rundeck: { from: importRundeck, zone: local },
  jenkins: { from: importJenkins, zone: local },
};

export interface ImportFileOptions extends CommonOptions {
  zone?: string;
  group?: string;
  bundle?: string;
  output?: string;
  compare?: boolean;
}

/** Converts an export of another scheduler to a file of tasks. Uses no store: the user reviews and corrects the file, then applies it. */
export async function importTasks(
  kind: keyof typeof imports,
  files: string[],
  options: ImportFileOptions,
  terminal: Terminal,
): Promise<ExitCode> {
  const { from, zone } = importers[kind];
  const sources = files.map((path) => ({
    path,
    text: textOfFile(path, `Give the path of what ${kind} exported, or - for standard input.`),
  }));
  const nowMs = Date.now();
  const { tasks, remarks } = from(sources, { zone: zoneName(options.zone ?? zone()), group: options.group, nowMs });
  return options.compare
    ? compareImported(kind, { tasks, remarks }, nowMs, options, terminal)
    : writeImported(kind, tasks, remarks, options, terminal);
}
