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

test("where the server has alarms, nothing is said, whatever the worker has", async () => {
  expect(await said({ ...server, alarms }, worker, { ...worker, alarms })).toEqual([null, null, null]);
});

test("alarms that only the worker has are said to be in vain, by whichever comes second", async () => {
  expect(await said(worker, { ...server }, { ...worker, alarms })).toEqual([null, "info ", "warn node-2"]);
});

test("alarms that only the worker has are said to be in vain by the server that comes after it", async () => {
  expect(await said({ ...worker, alarms }, server)).toEqual(["warn node-0", "warn node-0"]);
});

test("that another server has none is said by that one", async () => {
  expect(await said({ ...server, alarms }, server)).toEqual([null, "warn node-1"]);
});

test("a cluster without any channel says once a process that nobody is told", async () => {
  expect(await said({}, worker)).toEqual(["info ", null]);
});
