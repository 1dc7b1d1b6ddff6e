import { describe, expect, it } from "vitest";
import { readable, sample, told, utc } from "../../test/support/imports.ts";
import { compareTask } from "./compare/compare.ts";
import type { Findings, ImportOptions, SourceFile } from "./findings.ts";
import { importGraphile } from "./graphile.ts";
import { importEventbridge } from "./hosted/eventbridge.ts";
import { importGithubActions } from "./hosted/github-actions.ts";
import { importVercel } from "./hosted/vercel.ts";
import { importApscheduler } from "./python/apscheduler.ts";
import { importCelery } from "./python/celery-beat.ts";
import { importQuartz } from "./quartz.ts";
import { importSidekiqCron } from "./ruby/sidekiq-cron.ts";
import { importSolidQueue } from "./ruby/solid-queue.ts";
import { importDkron } from "./servers/dkron.ts";
import { importJenkins } from "./servers/jenkins.ts";
import { importPowerjob } from "./servers/powerjob.ts";
import { importRundeck } from "./servers/rundeck.ts";
import { importSystemd } from "./systemd/timers.ts";

type Importer = (files: readonly SourceFile[], options: ImportOptions) => Findings;

/** The expected tasks of each sample file, with their times. A suspended task has no schedule. */
const samples: [string, Importer, string[], Record<string, unknown>][] = [
  [
    "solid-queue",
    importSolidQueue,
    ["recurring.yml"],
    { trim_cable: "12 * * * *", nightly_report: "0 5 * * MON-FRI", purge: "*/15 * * * *" },
  ],
  ["sidekiq-cron", importSidekiqCron, ["schedule.yml"], { market_data: "0 22 * * 1-5", old_sync: undefined }],
  ["vercel", importVercel, ["vercel.json"], { "api/cron/digest": "0 10 * * 1", "api/cron/expire": "*/15 * * * *" }],
  [
    "github-actions",
    importGithubActions,
    ["nightly.workflow.yml"],
    { "Nightly-1": "17 3 * * *", "Nightly-2": "30 6 * * 1-5" },
  ],
  [
    "eventbridge",
    importEventbridge,
    ["eventbridge.json"],
    { "billing/settle": "0 15 10 ? * MON-FRI *", poll: undefined, launch: "2031-05-01T13:00:00.000Z" },
  ],
  [
    "systemd",
    importSystemd,
    ["backup.timer", "backup.service"],
    { "backup-1": "30 2 * * MON-FRI", "backup-2": "0 18 * * SAT#1" },
  ],
  ["celery", importCelery, ["celery-beat.json"], { "Clean-carts": "30 4 * * 1-5", poll: undefined }],
  ["apscheduler", importApscheduler, ["apscheduler.json"], { report: "0 0 9 * * MON,TUE,WED,THU,FRI", beat: "30s" }],
  ["graphile", importGraphile, ["graphile.crontab"], { send_digest: "0 4 * * *", poll: "*/15 * 1 * 1" }],
  ["dkron", importDkron, ["dkron.json"], { rotate: "0 30 2 * * *", ping: "30s", "after-rotate": undefined }],
  ["powerjob", importPowerjob, ["powerjob.sql"], { settle: "0 15 10 ? * MON-FRI", sweep: undefined }],
  ["rundeck", importRundeck, ["rundeck.yaml"], { "ops/db/nightly": "0 30 2 ? * MON-FRI *", "by-hand": undefined }],
  ["jenkins", importJenkins, ["jenkins.config.xml"], { "jenkins-1": "30 6 * * 1-5", "jenkins-2": "24 0 * * *" }],
  [
    "quartz's tables",
    importQuartz,
    ["quartz.sql"],
    { "billing.settle:weekdays": "0 15 10 ? * MON-FRI", "billing.settle:night": undefined, sweep: "1m" },
  ],
];

describe.each(samples)("the sample of %s", (_, from, paths, expected) => {
  const found = from(paths.map(sample), utc);
  const timeOf = (schedule: unknown) => {
    const { cron, every, at } = (schedule ?? {}) as Record<string, unknown>;
    return cron ?? every ?? at;
  };

  it("is imported completely, and the written file can be applied", () => {
    readable(found);
    expect(told(found, "problem")).toEqual([]);
    expect(Object.fromEntries(found.tasks.map(({ name, written }) => [name, timeOf(written.schedule)]))).toEqual(
      expected,
    );
  });

  it("fires when its source does; only Jenkins' H cannot be compared", () => {
    const outcomes = found.tasks.map((task) => compareTask(task, utc.nowMs, 20));
    expect(outcomes.filter(({ outcome }) => outcome !== "same").map(({ name }) => name)).toEqual(
      expected["jenkins-2"] ? ["jenkins-2"] : [],
    );
  });
});
