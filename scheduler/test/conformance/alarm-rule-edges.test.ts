import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { defineTask } from "../../src/task/task.ts";
import { Rules, summaryMs } from "../support/alarm-rules-stage.ts";
import { everyPostgres } from "../support/servers.ts";
import { change } from "../support/store-stage.ts";

const minute = 60_000;

describe.each(everyPostgres())("stored alarm rules at their edges, on $title", (server) => {
  const rules = new Rules();
  beforeAll(() => rules.open(server));
  afterEach(() => rules.clean());
  afterAll(() => rules.stage.close());

  it.each(["maintenance", "quiet"])("events in a time without messages are told when it ends: %s", async (by) => {
    const task = await rules.stage.task("planned", { group: "planned" });
    const [from, to] = [rules.t, rules.t + 60 * minute].map((ms) => new Date(ms).toISOString()) as [string, string];
    const held =
      by === "quiet"
        ? { quiet: { from: from.slice(11, 16), to: to.slice(11, 16), zone: "UTC" } }
        : { maintenance: [{ from, to }] };
    await rules.create("versions", { kind: "changed", channels: ["ops"], ...held });
    await rules.look(rules.t + 1);
    const edited = defineTask("planned", { description: "another", group: "planned" });
    await rules.stage.store.tasks.save(edited, null, change(rules.t + 2));
    const endMs = Date.parse(to) - (by === "quiet" ? Date.parse(to) % minute : 0);
    for (const atMs of [rules.t + 3, rules.t + 10 * minute, endMs - 1]) await rules.look(atMs);
    expect([await rules.open_(), await rules.sent("versions")]).toEqual([["versions planned"], []]);
    await rules.look(endMs);
    await rules.look(endMs + 1);
    expect([await rules.open_(), await rules.sent("versions")]).toEqual([["versions planned"], ["ops raised"]]);
    const [message] = await rules.alarms.outbox(1);
    const { message: body } = await rules.alarms.message(message?.id as number);
    expect(body.subjects.map(({ task: name }) => name)).toEqual([task.definition.name]);
    await rules.look(endMs + summaryMs + 1);
    expect(await rules.open_(), "it is over").toEqual([]);
    await rules.look(endMs + 3 * summaryMs);
    expect(await rules.sent("versions")).toEqual(["ops raised", "ops cleared"]);
  });
});
