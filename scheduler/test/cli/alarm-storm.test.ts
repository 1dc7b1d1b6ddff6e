/** Takes two minutes: the test waits for the summary and the all-clear of 10,000 failures. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { lookingOptions } from "../../src/cli/store-choice.ts";
import { Carillon } from "../../src/library/carillon.ts";
import { until } from "../support/store-stage.ts";
import { WebhookReceiver } from "../support/webhook-receiver.ts";
import { file, folder, here, rows, schema, start, url } from "./process.ts";

const guardMs = 100_000;
const summaryMs = 20_000;
const [taskCount, runsEach] = [20, 500];
const failures = taskCount * runsEach;
const names = Array.from({ length: taskCount }, (_, n) => `breaks-${n}`);

const tasksFile = `
import { carillon } from "carillon";
export const tower = carillon({ concurrency: 100 });
for (const name of ${JSON.stringify(names)})
  tower.task(name, {}, (_run, payload) => { if (payload !== "well") throw new Error("no route to bank"); });
`;
const program = fileURLToPath(new URL("../support/programs/mail-server.mjs", import.meta.url));

const receiver = new WebhookReceiver();
let hook: string;
let mailServer: ChildProcess | undefined;
beforeAll(async () => {
  hook = await receiver.listen();
});
afterAll(() => receiver.close());
const killMail = async () => {
  if (!mailServer || mailServer.exitCode !== null || mailServer.signalCode !== null) return;
  mailServer.kill("SIGKILL");
  await once(mailServer, "exit");
};
afterEach(killMail);

/** Starts the mail server. @returns its port */
async function startMail(port: number, mails: string): Promise<number> {
  mailServer = spawn(process.execPath, [program, String(port), mails], { stdio: ["ignore", "pipe", "inherit"] });
  const [said] = (await once(mailServer.stdout as NodeJS.ReadableStream, "data")) as [Buffer];
  return Number(said.toString());
}

it("10,000 failures give each channel one message, a summary and one all-clear, although nodes and the mail server are killed", async () => {
  const mails = join(folder, "mails");
  writeFileSync(mails, "");
  const port = await startMail(0, mails);
  await file("storm.ts", tasksFile);
  await file(
    "storm.yaml",
    `channels:\n  ops: { webhook: "${hook}" }\n` +
      `  mail: { smtp: "smtp://127.0.0.1:${port}", from: carillon@example.com, to: [ops@example.com] }\n` +
      `rules: { late: [], overdue: [], stuck: [] }\nsummary: ${summaryMs}ms\n`,
  );
  const server = async (name: string) => {
    const one = start(["server", "--alarms", "storm.yaml", "--name", name, ...here(), "--json"]);
    await one.says(/server is ready/);
    return one;
  };
  const servers = [await server("one"), await server("two")];
  const worker = start(["worker", "storm.ts", ...here(), "--json"]);
  await worker.says(/worker is ready/);
  await until(
    "alarms were looked for",
    async () => (await rows("select from $s.alarm_seen where task_id = 0")).length === 1,
  );
  const beside = new Carillon({ ...lookingOptions({ store: url, schema, color: false }) });
  try {
    // Both routes hold the message when the nodes are killed: the webhook gives no answer, and no mail server is there.
    receiver.status = null;
    await killMail();
    const ill = Array.from({ length: runsEach }, () => "ill");
    for (const name of names) await beside.enqueueMany(name, ill as never);
    await until("the webhook was sent", () => receiver.kinds("failed").length > 0, guardMs);
    const tried = async () =>
      (await rows("select from $s.alarm_outbox where channel = 'mail' and rule = 'failed' and attempts > 0")).length >
      0;
    await until("a mail was tried", tried, guardMs);
    // Either server may have taken the message, so both are killed, the second one once a third can go on.
    await servers[0]?.end("SIGKILL");
    await server("three");
    await servers[1]?.end("SIGKILL");
    const ended = async () =>
      Number((await rows("select count(*)::int as n from $s.run_history where outcome = 1"))[0]?.n);
    await until("all runs have failed", async () => (await ended()) === failures, guardMs);
    const [span] = await rows("select max(ended_ms) - min(ended_ms) as ms from $s.run_history where outcome = 1");
    receiver.status = 200;
    expect(await startMail(port, mails)).toBe(port);
    // The nodes that were killed still reserve the messages for a minute, and refused ones are tried again after minutes. The test does not
    // wait for that.
    const hurry = () => rows("update $s.alarm_outbox set next_ms = 0 where sent_ms is null");
    // The id of a message ends with its number in the store, in a mail as in a webhook; a repetition has the same id.
    const numbers = (ids: (string | undefined)[]) =>
      new Set(ids.flatMap((id) => /-(\d+)(?:@|$)/.exec(id ?? "")?.[1] ?? []));
    const mailed = () =>
      numbers(
        readFileSync(mails, "utf8")
          .split("\n")
          .flatMap((line) => /Message-ID: <([^>]+)>/.exec(line)?.[1] ?? []),
      );
    const posted = () => numbers(receiver.posted.map(({ headers }) => headers["carillon-notice"] as string));
    const kinds = async (channel: string, came: Set<string>) => {
      const all = await rows(
        "select id, kind from $s.alarm_outbox where rule = 'failed' and channel = $1 order by id",
        channel,
      );
      return all.flatMap(({ id, kind }) => (came.has(String(id)) ? [String(kind)] : []));
    };
    const toldOf = async () => [await kinds("ops", posted()), await kinds("mail", mailed())];
    const haveAll = async (kind: string) => {
      await hurry();
      return (await toldOf()).every((told) => told.includes(kind));
    };
    // One message reports them all if the first evaluation found all failures.
    const allTold = async () => {
      await hurry();
      const [incident] = await rows("select told from $s.alarm_incident where rule = 'failed'");
      const written = await rows("select from $s.alarm_outbox where rule = 'failed' and channel = 'ops'");
      return Number(incident?.told) === failures && (await toldOf()).every(({ length }) => length === written.length);
    };
    await until("all failures were told", allTold, guardMs);
    for (const name of names) await beside.enqueue(name, "well");
    await until("the all-clears came", () => haveAll("cleared"), guardMs);
    const [told = [], inMails] = await toldOf();
    expect(inMails).toEqual(told);
    expect(told.filter((kind) => kind === "raised")).toHaveLength(1);
    expect(told.filter((kind) => kind === "cleared")).toHaveLength(1);
    // A summary for each window in which runs failed: one, unless the machine needed longer for 10,000 runs.
    expect(told.filter((kind) => kind === "summary").length).toBeLessThanOrEqual(
      1 + Math.floor(Number(span?.ms) / summaryMs),
    );
    const last = receiver.posted.findLast(({ body }) => body.rule === "failed")?.body;
    expect(last).toMatchObject({ kind: "cleared", total: failures });
    // No other rule has sent more than one message to a channel either.
    const outbox = await rows("select rule, channel from $s.alarm_outbox where kind = 'raised'");
    const routes = outbox.map(({ rule, channel }) => `${rule} to ${channel}`);
    expect(new Set(routes).size).toBe(routes.length);
  } finally {
    await beside.stop();
  }
}, 600_000);
