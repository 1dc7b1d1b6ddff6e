/** Tests webhooks of slots and changes with real processes: the process that posts is killed, and another one continues. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { lookingOptions } from "../../src/cli/store-choice.ts";
import { Carillon } from "../../src/library/carillon.ts";
import { every } from "../../src/schedule/schedule.ts";
import { defineTask } from "../../src/task/task.ts";
import { until } from "../support/store-stage.ts";
import { WebhookReceiver } from "../support/webhook-receiver.ts";
import { file, here, rows, schema, start, url } from "./process.ts";

const guardMs = 60_000;
const receiver = new WebhookReceiver();
let hook: string;
beforeAll(async () => {
  hook = await receiver.listen();
});
afterAll(() => receiver.close());

interface Event {
  id: string;
  type: string;
  subject: string;
  data: { slot: string; slots: number | null; until: string; named: string; before: number | null; after: number };
}

it("every slot and every change reaches the receiver, although the posting process is killed with signal 9", async () => {
  await file(
    "events.yaml",
    `webhooks:\n  slots: { url: "${hook}/slots", types: [slot.planned, slot.caught-up, slot.missed], task: each }\n` +
      `  changes: { url: "${hook}/changes", types: [task.changed], namespace: team }\n`,
  );
  const options = [...here(), "--config", "events.yaml", "--json"];
  const servers = [start(["server", ...options]), start(["server", ...options])];
  for (const server of servers) await server.says(/server is ready/);
  const eventsAt = (path: string) =>
    receiver.posted.filter((posted) => posted.url === `/hook/${path}`).map(({ body }) => body as unknown as Event);
  const beside = new Carillon({ ...lookingOptions({ store: url, schema, color: false }) });
  let version = 0;
  const edit = async () => {
    version++;
    await beside.save(defineTask("team/edited", { description: `version ${version}` }));
  };
  try {
    await beside.save(defineTask("each", { schedule: every("1s") }));
    await beside.save(defineTask("unseen", { schedule: every("1s") }));
    await edit();
    await until("events came", () => eventsAt("slots").length > 0 && eventsAt("changes").length > 0, guardMs);
    // From now on the receiver gives no answer, so a process is killed while it posts.
    receiver.status = null;
    const before = receiver.posted.length;
    await edit();
    await until("an event was posted", () => receiver.posted.length > before + 1, guardMs);
    const epochs = async () => rows("select epoch from $s.event_consumer");
    expect(await epochs()).toHaveLength(2);
    // Either process may serve the webhook, so both are killed: the second one after a third process has started.
    await servers[0]?.end("SIGKILL");
    await edit();
    servers.push(start(["server", ...options]));
    await servers[2]?.says(/server is ready/);
    await servers[1]?.end("SIGKILL");
    await edit();
    receiver.status = 204;
    const ledger = async () =>
      (await rows("select slot_ms from $s.slot l join $s.task t on t.id = l.task_id where t.name = 'each'")).map(
        (row) => new Date(Number(row.slot_ms)).toISOString(),
      );
    const due = await ledger();
    const versions = () => new Set(eventsAt("changes").map(({ data }) => data.after));
    await until("all changes came", () => versions().size === version, guardMs);
    const told = () => new Set(eventsAt("slots").flatMap(({ data }) => (data.slots === 1 ? [data.slot] : [])));
    await until("all slots came", () => due.every((slot) => told().has(slot)), guardMs);
    expect([...versions()].sort()).toEqual(Array.from({ length: version }, (_, at) => at + 1));
    expect(new Set(eventsAt("slots").map(({ subject }) => subject))).toEqual(new Set(["each"]));
    expect(new Set(eventsAt("changes").map(({ subject }) => subject))).toEqual(new Set(["team/edited"]));
    // The event whose delivery got no answer was delivered again with the same id.
    const ids = [...eventsAt("slots"), ...eventsAt("changes")].map(({ id }) => id);
    expect(new Set(ids).size).toBeLessThan(ids.length);
  } finally {
    await beside.stop();
  }
});
