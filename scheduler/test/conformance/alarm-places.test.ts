import { expect, test } from "vitest";
import { ownSchema } from "../support/own-schema.ts";
import { postgres } from "../support/servers.ts";
import { recordingLog } from "../support/store-stage.ts";

const { make } = ownSchema(postgres().url, "alarm_places");
const alarms = { channels: { ops: { webhook: "http://127.0.0.1:9/" } } };
const server = { scheduler: true, worker: false };
const worker = { scheduler: false, worker: true };

/** Starts these processes one after another. @returns for each, the level and nodes of its log lines about alarms; null: it logged none */
async function said(...processes: Parameters<typeof make>[0][]): Promise<(string | null)[]> {
  const told: (string | null)[] = [];
  for (const [i, options] of processes.entries()) {
    const { log, lines } = recordingLog();
    await make({ name: `node-${i}`, ...options, log }).start();
    const about = lines.filter(({ message }) => message.includes("alarms"));
    told.push(about.length === 0 ? null : about.map(({ level, fields }) => `${level} ${fields.nodes ?? ""}`).join());
  }
  return told;
}

test("if the server has alarms, no warning is logged, whatever alarms the worker has", async () => {
  expect(await said({ ...server, alarms }, worker, { ...worker, alarms })).toEqual([null, null, null]);
});

test("alarms that only the worker has are logged as without effect by the process that starts second", async () => {
  expect(await said(worker, { ...server }, { ...worker, alarms })).toEqual([null, "info ", "warn node-2"]);
});

test("alarms that only the worker has are logged as without effect by a server that starts after it", async () => {
  expect(await said({ ...worker, alarms }, server)).toEqual(["warn node-0", "warn node-0"]);
});

test("a server without alarms logs a warning if another server has them", async () => {
  expect(await said({ ...server, alarms }, server)).toEqual([null, "warn node-1"]);
});

test("in a cluster without channels, one process logs once that alarms are sent to no channel", async () => {
  expect(await said({}, worker)).toEqual(["info ", null]);
});
