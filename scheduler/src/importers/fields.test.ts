import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { told, utc } from "../../test/support/imports.ts";
import { importBullmq } from "./bullmq.ts";
import { compareTask } from "./compare/compare.ts";
import { type FieldTable, fieldTable, tellFields } from "./fields.ts";
import { fieldsPage, fieldTables } from "./fields-page.ts";
import { Findings, type ImportOptions, type Row, type SourceFile } from "./findings.ts";
import { graphileFields, importGraphile } from "./graphile.ts";
import { eventbridgeFields, importEventbridge, targetFields } from "./hosted/eventbridge.ts";
import { importGithubActions, scheduleFields, workflowFields } from "./hosted/github-actions.ts";
import { importVercel, vercelFields } from "./hosted/vercel.ts";
import { importKubernetes } from "./kubernetes.ts";
import { importPgBoss } from "./pg-boss.ts";
import { apschedulerFields, importApscheduler } from "./python/apscheduler.ts";
import { importCelery, periodicTaskFields } from "./python/celery-beat.ts";
import { importQuartz } from "./quartz.ts";
import { importSidekiqCron, sidekiqFields } from "./ruby/sidekiq-cron.ts";
import { importSolidQueue, solidQueueFields } from "./ruby/solid-queue.ts";
import { dkronFields, importDkron } from "./servers/dkron.ts";
import { importJenkins, jenkinsFields } from "./servers/jenkins.ts";
import { importPowerjob, powerFields } from "./servers/powerjob.ts";
import { importRundeck, rundeckFields } from "./servers/rundeck.ts";
import { importSystemd, serviceFields, timerFields } from "./systemd/timers.ts";
import { fromXxl } from "./xxl-job.ts";

type Importer = (files: readonly SourceFile[], options: ImportOptions) => Findings;

const asJson =
  (from: Importer, wrap: (row: Row) => unknown, path = "x.json") =>
  (row: Row) =>
    from([{ path, text: JSON.stringify(wrap(row)) }], utc);
const rows = (text: string): Row[] =>
  text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Row);
const lines = (row: Row) =>
  Object.entries(row)
    .map(([name, value]) => `${name}=${value}\n`)
    .join("");
const service = "[Service]\nExecStart=/bin/true\n";
const inXml = (row: Row) =>
  Object.entries(row)
    .map(([name, value]) => `<${name}>${value}</${name}>`)
    .join("");
const timer = "<hudson.triggers.TimerTrigger><spec>5 4 * * *</spec></hudson.triggers.TimerTrigger>";
const models = [
  { model: "django_celery_beat.crontabschedule", pk: 1, fields: { minute: "5", hour: "4", timezone: "Asia/Tokyo" } },
  { model: "django_celery_beat.intervalschedule", pk: 2, fields: { every: 5, period: "minutes" } },
  { model: "django_celery_beat.clockedschedule", pk: 3, fields: { clocked_time: "2030-01-01T00:00:00Z" } },
];

/** For each table, a sample row that has all its fields with values other than their defaults. */
const cases: [string, FieldTable, (row: Row) => Findings, string][] = [
  [
    "solid-queue",
    solidQueueFields,
    asJson(importSolidQueue, (row) => ({ production: { nightly: row } })),
    `{"class":"A","args":[1],"schedule":"every hour","queue":"slow","priority":2,"description":"d"}
     {"command":"A.b","schedule":"every hour"}`,
  ],
  [
    "sidekiq-cron",
    sidekiqFields,
    asJson(importSidekiqCron, (row) => [row]),
    `{"name":"n","cron":"0 4 * * *","class":"A","queue":"slow","args":[1],"description":"d","status":"disabled","active_job":true,"symbolize_args":true,"source":"schedule","queue_name_prefix":"p","queue_name_delimiter":".","date_as_argument":true,"namespace":"s","retry":3}
     {"name":"n","cron":"0 4 * * *","klass":"A"}`,
  ],
  [
    "vercel",
    vercelFields,
    asJson(importVercel, (row) => ({ crons: [row] })),
    `{"path":"/api/a","schedule":"0 4 * * *"}`,
  ],
  [
    "workflow",
    workflowFields,
    asJson(importGithubActions, (row) => row, "x.yml"),
    `{"name":"n","on":{"schedule":[{"cron":"0 4 * * *"}]},"run-name":"r","jobs":{"a":1},"env":{"A":"b"},"defaults":{"a":1},"permissions":{"a":1},"concurrency":"one"}`,
  ],
  [
    "on.schedule",
    scheduleFields,
    asJson(importGithubActions, (row) => ({ name: "n", on: { schedule: [row] } }), "x.yml"),
    `{"cron":"0 4 * * *","timezone":"Asia/Tokyo"}`,
  ],
  [
    "eventbridge",
    eventbridgeFields,
    asJson(importEventbridge, (row) => row),
    `{"Name":"n","GroupName":"g","Description":"d","ScheduleExpression":"cron(0 4 * * ? *)","ScheduleExpressionTimezone":"Asia/Tokyo","StartDate":"2030-01-01T00:00:00Z","EndDate":"2031-01-01T00:00:00Z","State":"DISABLED","FlexibleTimeWindow":{"Mode":"FLEXIBLE","MaximumWindowInMinutes":5},"Target":{"Arn":"a"},"ActionAfterCompletion":"DELETE","KmsKeyArn":"k","Arn":"a","CreationDate":1,"LastModificationDate":1,"ClientToken":"t"}`,
  ],
  [
    "Target",
    targetFields,
    asJson(importEventbridge, (row) => ({ Name: "n", ScheduleExpression: "rate(5 minutes)", Target: row })),
    `{"Arn":"a","Input":"{}","RetryPolicy":{"MaximumRetryAttempts":2},"RoleArn":"r","DeadLetterConfig":{"Arn":"d"},"EcsParameters":{"a":1},"EventBridgeParameters":{"a":1},"KinesisParameters":{"a":1},"SageMakerPipelineParameters":{"a":1},"SqsParameters":{"a":1}}`,
  ],
  [
    "timer",
    timerFields,
    (row) =>
      importSystemd(
        [
          { path: "a.timer", text: `[Timer]\n${lines(row)}` },
          { path: "a.service", text: service },
        ],
        utc,
      ),
    `{"OnCalendar":"daily","OnActiveSec":"1m","OnBootSec":"1m","OnStartupSec":"1m","RandomizedDelaySec":"5m","Persistent":"true","Unit":"b.service","AccuracySec":"1s","FixedRandomDelay":"true","RandomizedOffsetSec":"1m","RemainAfterElapse":"true","WakeSystem":"true","OnClockChange":"true","OnTimezoneChange":"true","DeferReactivation":"true"}
     {"OnCalendar":"daily","RandomizedOffsetSec":"1m"}
     {"OnUnitActiveSec":"5min"}
     {"OnUnitInactiveSec":"5min"}`,
  ],
  [
    "service",
    serviceFields,
    (row) =>
      importSystemd(
        [
          { path: "a.timer", text: "[Timer]\nOnCalendar=daily\n" },
          { path: "a.service", text: `[Service]\n${lines(row)}` },
        ],
        utc,
      ),
    `{"ExecStart":"/bin/a b","Environment":"A=b","WorkingDirectory":"/srv","User":"u","TimeoutStartSec":"5m","Type":"oneshot","StandardOutput":"null","StandardError":"null","SyslogIdentifier":"a","EnvironmentFile":"/e","ExecStartPre":"/bin/c","ExecStartPost":"/bin/c","ExecStopPost":"/bin/c","Group":"g","Restart":"on-failure"}
     {"ExecStart":"/bin/a b","TimeoutSec":"5m"}`,
  ],
  [
    "celery",
    periodicTaskFields,
    (row) =>
      "schedule" in row || "options" in row
        ? asJson(importCelery, ({ name = "n", ...rest }) => ({ [String(name)]: rest }))(row)
        : asJson(importCelery, (fields) => [...models, { model: "django_celery_beat.periodictask", pk: 1, fields }])(
            row,
          ),
    `{"name":"n","task":"t","crontab":1,"args":"[1]","kwargs":"{\\"a\\":1}","queue":"slow","enabled":false,"start_time":"2030-01-01T00:00:00Z","expires":"2031-01-01T00:00:00Z","one_off":true,"description":"d","exchange":"e","routing_key":"r","headers":"{\\"a\\":1}","priority":2,"expire_seconds":5,"last_run_at":"2020-01-01T00:00:00Z","total_run_count":5,"date_changed":"2020-01-01T00:00:00Z"}
     {"name":"n","interval":2}
     {"name":"n","clocked":3}
     {"name":"n","solar":4}
     {"name":"n","schedule":30,"options":{"queue":"slow"},"relative":true}`,
  ],
  [
    "apscheduler",
    apschedulerFields,
    asJson(importApscheduler, (row) => [row]),
    `{"id":"n","name":"d","func":"a:b","args":[1],"kwargs":{"a":1},"trigger":"cron","year":"2027-2030","month":"1-6","day":"2","hour":"3","minute":"4","second":"5","start_date":"2028-01-01T00:00:00Z","end_date":"2030-01-01T00:00:00Z","timezone":"Asia/Tokyo","jitter":5,"misfire_grace_time":30,"max_instances":3,"next_run_time":null,"coalesce":true,"executor":"pool","jobstore":"s","replace_existing":true}
     {"id":"n","trigger":"cron","day_of_week":"0","hour":3}
     {"id":"n","trigger":"cron","week":"3","hour":3}
     {"id":"n","trigger":"interval","weeks":1,"days":1,"hours":1,"minutes":1,"seconds":1}
     {"id":"n","trigger":"date","run_date":"2030-01-01T00:00:00Z"}`,
  ],
  [
    "graphile",
    graphileFields,
    (row) =>
      importGraphile(
        [{ path: "crontab", text: `0 4 * * * a ?${new URLSearchParams(row as Record<string, string>)}` }],
        utc,
      ),
    `{"id":"n","fill":"1d","max":"3","queue":"q","priority":"2","jobKey":"k","jobKeyMode":"replace"}`,
  ],
  [
    "dkron",
    dkronFields,
    asJson(importDkron, (row) => [row]),
    `{"name":"n","displayname":"d","schedule":"0 5 4 * * *","timezone":"Asia/Tokyo","disabled":true,"concurrency":"forbid","retries":2,"parent_job":"p","executor":"shell","executor_config":{"command":"a b"},"tags":{"a":"b:1"},"starts_at":"2030-01-01T00:00:00Z","expires_at":"2031-01-01T00:00:00Z","owner":"o","owner_email":"e","metadata":{"a":"b"},"processors":{"log":{}},"ephemeral":true,"mounts":[1],"dependent_jobs":["x"],"id":"n","status":"success","next":"x","last_success":"x","last_error":"x","success_count":1,"error_count":1}`,
  ],
  [
    "powerjob",
    powerFields,
    asJson(importPowerjob, (row) => [row]),
    `{"id":7,"job_name":"n","job_description":"d","job_params":"p","time_expression_type":2,"time_expression":"0 5 4 * * ?","lifecycle":"{\\"start\\":1900000000000,\\"end\\":1950000000000}","execute_type":2,"processor_type":1,"processor_info":"i","max_instance_num":1,"instance_time_limit":5000,"instance_retry_num":2,"status":2,"app_id":1,"gmt_create":"x","gmt_modified":"x","next_trigger_time":5,"extra":"e","concurrency":5,"task_retry_num":1,"designated_workers":"w","dispatch_strategy":1,"dispatch_strategy_config":"c","min_cpu_cores":1,"min_memory_space":1,"min_disk_space":1,"max_worker_count":1,"notify_user_ids":"1","alarm_config":"a","log_config":"l","advanced_runtime_config":"c","tag":"t"}
     {"id":7,"time_expression_type":1}`,
  ],
  [
    "rundeck",
    rundeckFields,
    asJson(importRundeck, (row) => [row]),
    `{"name":"n","group":"g","description":"d","schedule":{"crontab":"0 5 4 ? * MON *"},"timeZone":"Asia/Tokyo","scheduleEnabled":false,"multipleExecutions":true,"timeout":"1h","retry":"2","sequence":{"commands":[{"exec":"a"}]},"options":[1],"nodefilters":{"a":1},"dispatch":{"a":1},"notification":{"a":1},"notifyAvgDurationThreshold":"5","maxMultipleExecutions":"3","orchestrator":{"a":1},"plugins":{"a":1},"logging":{"a":1},"uuid":"u","id":"i","loglevel":"INFO","defaultTab":"x","nodeFilterEditable":true,"nodesSelectedByDefault":true,"context":{"a":1}}
     {"name":"n","schedule":{"crontab":"0 5 4 ? * MON *"},"executionEnabled":false}`,
  ],
  [
    "jenkins",
    jenkinsFields,
    (row) => importJenkins([{ path: "jobs/n/config.xml", text: `<project>${inXml(row)}</project>` }], utc),
    JSON.stringify({
      triggers: timer,
      description: "d",
      disabled: "true",
      concurrentBuild: "true",
      displayName: "x",
      actions: "<a/>",
      keepDependencies: "true",
      canRoam: "true",
      builders: "<a/>",
      definition: "<a/>",
      publishers: "<a/>",
      scm: "<a/>",
      buildWrappers: "<a/>",
      assignedNode: "a",
      quietPeriod: "5",
    }).concat(`\n${JSON.stringify({ properties: timer })}`),
  ],
];

const outcome = ({ tasks, remarks }: Findings) => JSON.stringify({ tasks, remarks });

describe.each(cases)("the table of %s", (_, table, run, text) => {
  const samples = rows(text);

  it("has each field of the samples, and no other field", () => {
    expect([...new Set(samples.flatMap(Object.keys))].sort()).toEqual([...table.keys()].sort());
  });

  it("describes each field: carried and lost fields change the outcome, and unused fields do not", () => {
    const changed = new Map<string, boolean>();
    for (const sample of samples)
      for (const name of Object.keys(sample)) {
        const { [name]: _left, ...rest } = sample;
        changed.set(name, changed.get(name) || outcome(run(rest)) !== outcome(run(sample)));
      }
    for (const [name, { fate }] of table) expect([name, changed.get(name)]).toEqual([name, fate !== "unused"]);
  });

  it("accepts odd values in any field: each gives a task, a remark or a problem, and no error", () => {
    const odd = [null, true, -1, 1e30, "", "x", "9999-99-99", "%s|&", [], ["x"], {}, { x: "y" }, [[]]];
    for (const sample of samples)
      for (const name of Object.keys(sample))
        for (const value of odd) {
          const found = run({ ...sample, [name]: value });
          for (const task of found.tasks) expect(compareTask(task, utc.nowMs, 2).name).toBe(task.name);
          expect(found.tasks.length + found.remarks.length).toBeGreaterThan(0);
        }
  });

  it("reports an unknown field", () => {
    const [sample] = samples;
    expect(told(run({ ...sample, novelty: "x" }), "lost").join()).toContain("novelty");
  });
});

const template = "jobTemplate";
const cronJob = (over: { spec?: object; work?: object; pod?: object; container?: object }) => ({
  apiVersion: "batch/v1",
  kind: "CronJob",
  metadata: { name: "n" },
  spec: {
    schedule: "0 4 * * *",
    ...over.spec,
    [template]: {
      spec: {
        ...over.work,
        template: {
          spec: { ...over.pod, containers: [{ name: "n", image: "a", command: ["/bin/true"], ...over.container }] },
        },
      },
    },
  },
});
const novel = { novelty: "x" };
const quartz = (detail: string, trigger: string) =>
  `<job-scheduling-data><schedule><job><name>n</name><job-class>A</job-class>${detail}</job><trigger><cron><name>t</name><job-name>n</job-name><cron-expression>0 0 4 * * ?</cron-expression>${trigger}</cron></trigger></schedule></job-scheduling-data>`;
const novelty = "<novelty>x</novelty>";
/** Importers without a table on the page: a file with a field that is not known, and the field's path. */
const withoutTable: [string, Importer, string, string][] = [
  ["pg-boss", importPgBoss, JSON.stringify([{ name: "n", cron: "0 4 * * *", ...novel }]), "novelty"],
  ["pg-boss", importPgBoss, JSON.stringify([{ name: "n", cron: "0 4 * * *", options: novel }]), "option novelty"],
  ["bullmq", importBullmq, JSON.stringify([{ key: "n", name: "n", every: 5_000, ...novel }]), "novelty"],
  [
    "bullmq",
    importBullmq,
    JSON.stringify([{ key: "n", name: "n", every: 5_000, template: novel }]),
    "template.novelty",
  ],
  ["bullmq", importBullmq, JSON.stringify([{ key: "n", every: 5_000, template: { opts: novel } }]), "option novelty"],
  ["xxl-job", fromXxl, JSON.stringify([{ id: 1, executor_handler: "n", schedule_type: "NONE", ...novel }]), "novelty"],
  ["kubernetes", importKubernetes, JSON.stringify({ ...cronJob({}), ...novel }), "novelty"],
  ["kubernetes", importKubernetes, JSON.stringify(cronJob({ spec: novel })), "spec.novelty"],
  ["kubernetes", importKubernetes, JSON.stringify(cronJob({ work: novel })), "spec.jobTemplate.spec.novelty"],
  [
    "kubernetes",
    importKubernetes,
    JSON.stringify(cronJob({ pod: novel })),
    "spec.jobTemplate.spec.template.spec.novelty",
  ],
  [
    "kubernetes",
    importKubernetes,
    JSON.stringify(cronJob({ container: novel })),
    "spec.jobTemplate.spec.template.spec.containers[0].novelty",
  ],
  ["quartz", importQuartz, quartz(novelty, ""), "job.novelty"],
  ["quartz", importQuartz, quartz("", novelty), "cron.novelty"],
];

describe("importers without a table on the page", () => {
  it.each(withoutTable)("%s reports a field that is not known, with its path", (_, from, text, path) => {
    const found = from([{ path: "x.xml", text }], utc);
    expect(found.tasks).toHaveLength(1);
    expect(told(found, "lost").join("\n")).toContain(`its ${path}`);
  });
});

describe("a table of fields", () => {
  it("reports lost fields with their path if they have a value", () => {
    const findings = new Findings(utc);
    const table = fieldTable("a | lost | it is gone | Do that.\nb | unused | |");
    tellFields({ a: "x", b: "x", c: null }, table, "s", findings, "Target");
    tellFields({ a: "", b: "x" }, table, "s", findings);
    expect(findings.remarks).toEqual([
      { kind: "lost", source: "s", message: 'its Target.a "x": it is gone', hint: "Do that." },
    ]);
  });

  it("is refused with an unknown fate", () => expect(() => fieldTable("a | gone | b |")).toThrow(/no fate/));

  it("is on docs/reference/importing-fields.md (npm run build; node scripts/import-fields.mjs), and tested above", () => {
    expect(readFileSync(new URL("../../../docs/reference/importing-fields.md", import.meta.url), "utf8")).toBe(
      fieldsPage(),
    );
    expect(cases.map(([, table]) => table)).toEqual(expect.arrayContaining([...fieldTables.values()]));
  });
});
