/** Fills a cluster with at least one object of every kind that commands use. Two calls differ only in times and random names. */

import { readSecretKeys } from "../../src/access/secrets/read-keys.ts";
import { Secrets } from "../../src/access/secrets/secrets.ts";
import { cron } from "../../src/schedule/schedule.ts";
import type { ApiStage } from "../support/api-stage.ts";
import { said } from "../support/remote-stage.ts";

/** Ids and names of the prepared objects; they replace the placeholders in command lines. */
export interface Known {
  good: number;
  bad: number;
  waiting: number;
  operation: number;
  silence: number;
  fingerprint: string;
  worker: string;
}

export const filesOf: Readonly<Record<string, string>> = {
  "tasks.yaml": `bundle: billing
tasks:
  settle: { schedule: { cron: "0 2 * * *", zone: Asia/Shanghai }, timeout: 1h }
  beat: { schedule: { every: 5h } }
  old: {}
`,
  "changed.yaml": `bundle: billing
tasks:
  settle: { schedule: { cron: "0 2 * * *", zone: Asia/Shanghai }, timeout: 2h }
  beat: { schedule: { every: 5h } }
`,
  "thief.yaml": "bundle: thief\ntasks:\n  settle: {}\n  order: {}\n",
  "some.yaml": "bundle: some\ntasks:\n  some-1: {}\n  some-2: { calendar: { name: nowhere }, schedule: '0 2 * * *' }\n",
  "wrong.yaml": "bundle: wrong\ntasks:\n  w-1: { timeout: never }\n  w-2: { retry: { attempts: 0 } }\n",
  "proto.yaml":
    'bundle: proto\ntasks:\n  p-1: { slotPayload: { "__proto__": { x: 1 }, y: 2 }, schedule: "0 2 * * *" }\n',
  "rule.yaml":
    "kind: deadline\nby: '05:30'\nzone: Asia/Shanghai\nenabled: false\nscope: { tasks: [nightly] }\nchannels: [ops]\nescalate: { after: 15m, channels: [boss] }\n",
  "wrong-rule.yaml": "kind: deadline\nby: 24:30\nzone: Asia/Shanghai\n",
  "hook.yaml":
    "scheme: github\nsecret: mail-password\ntask: { by: 'header:x-github-event', of: { push: nightly } }\npayload: { head: /after }\nkey: /after\n",
  "push.json": '{ "after": "a1", "ref": "refs/heads/main" }\n',
  "wrong-hook.yaml": "scheme: github\nsecret: mail-password\ntask: order\nuniqueFor: never\n",
  "no-secret.yaml": "scheme: github\nsecret: no-such\ntask: order\n",
  "loose.yaml": "tasks:\n  loose: {}\n",
  "days.ics":
    "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTART;VALUE=DATE:20301224\r\nSUMMARY:Eve\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n",
  crontab: "0 2 * * * /usr/bin/backup\n*/5 * * * * a | b\n",
};

export async function prepared(stage: ApiStage): Promise<Known> {
  // Ids of seven digits can be recognised and masked in any output.
  await stage.sql.query(`alter sequence ${stage.schema}.run_id restart with 7000001`);
  for (const table of ["operation", "alarm_silence", "session"])
    await stage.sql.query(`alter table ${stage.schema}.${table} alter id restart with 7100001`);
  const { store } = stage;
  const change = { author: "prepared", reason: "", nowMs: Date.now() };
  await store.calendars.set("de", { zone: "Europe/Berlin", weekend: [0, 6], holidays: ["2030-12-25"] }, change);
  const schedule = cron("0 3 * * *", { zone: "Europe/Berlin" });
  await stage.task("nightly", { schedule, calendar: { name: "de" }, timeout: "1h", owner: "payments" });
  await stage.task("order");
  await stage.task("mail", { after: "order" });
  await stage.task("nobody", { group: "elsewhere" });
  const broken = [1, 2, 3, 4, 5, 6].map((n) => `broken-${n}`);
  for (const name of broken) await stage.task(name);
  const worker = "w-prepared";
  const key = await stage.key("prepared");
  const session = await stage.join(key, { name: worker, tasks: ["order", ...broken] });
  const ended = async (task: string, verdict: object) => {
    const run = await stage.claimed(key, session, task, { n: 1 });
    const logs = [{ runId: run.runId, fence: run.fence, agoMs: 1, message: "ding" }];
    await stage.poll(key, { session, logs, verdicts: [said(run, { startedAgoMs: 5, ...verdict })] });
    return run.runId;
  };
  const good = await ended("order", { outcome: "succeeded", result: { n: 1 } });
  const failed = { outcome: "failed", error: { message: "no route to bank", stack: "at bank.ts:1" } };
  const bad = await ended("order", failed);
  for (const name of broken) await ended(name, failed);
  await stage.poll(key, { session, leave: true });
  const waiting = (await stage.server.enqueue("nobody", { n: 2 }, { in: "9h" })).runId;
  const [group] = (await store.deadLetters.groups({})).groups;
  const operation = await store.operations.begin(
    { kind: "dismiss", filter: { task: "mail" }, author: "prepared", reason: "" },
    "prepared",
    Date.now(),
  );
  const t = Math.floor((await store.clock()).ms);
  await store.alarms.report([{ rule: "late", subject: "order", count: 1, text: "order was late", runId: null }], t);
  const thresholds = { lateMs: 1e9, overdueMs: 1e9, unfiredMs: 1e9, stuckMs: 1e9, leaderlessMs: 1e9, summaryMs: 1e9 };
  await store.alarms.look(["late"], thresholds, { late: ["nobody"] }, t);
  // The rule is disabled, because only the cluster with the server would evaluate it.
  await store.alarms.createRule(
    "by-six",
    { kind: "deadline", by: "06:00", zone: "Asia/Shanghai", enabled: false },
    change,
  );
  const { silenceId } = await store.alarms.silence({ rule: "stuck", task: null, untilMs: t + 86_400_000 }, change);
  await new Secrets(store.secrets, readSecretKeys(undefined)).set(
    "mail-password",
    "a value that is long",
    null,
    change,
  );
  await store.hooks.set("github", { secret: "mail-password", scheme: "github", task: "order" }, change, null);
  const { place } = await store.events.want(["run.failed"], t + 86_400_000, null, t);
  await store.events.enrol("webhook/billing", place, t + 86_400_000);
  await store.events.enrol("audit/all", { seq: 0 }, t + 86_400_000);
  const { epoch } = (await store.events.serve("webhook/billing")) as { epoch: number };
  const failing = { type: "run.failed" as const, runId: bad, task: "order", eventMs: t, attempt: 3, error: "no" };
  await store.events.failed("webhook/billing", epoch, { ...failing, atMs: t, againMs: t }, 0);
  return { good, bad, waiting, operation, silence: silenceId, fingerprint: group?.fingerprint ?? "", worker };
}
