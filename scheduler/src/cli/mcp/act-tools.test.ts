import { describe, expect, it } from "vitest";
import type { CallOptions, Client } from "../../api/client.ts";
import { defineTask } from "../../task/task.ts";
import { actTools } from "./act-tools.ts";
import { Confirmations } from "./confirmations.ts";
import type { Said, Tool } from "./tool.ts";

const task = {
  name: "order",
  version: 7,
  next: null,
  paused: null,
  changed: "2030-01-01T00:00:00Z",
  bundle: null,
  accounted: [],
  definition: defineTask("order", { timeout: "1h" }),
};

describe("an edit", () => {
  it("is based on the version that was shown, so that the server refuses it after another change", async () => {
    const sent: [object, CallOptions][] = [];
    const api = {
      getTask: async () => task,
      getCluster: async () => ({ now: "2030-01-01T00:00:00Z" }),
      editTask: async (given: object, options: CallOptions) => {
        sent.push([given, options]);
        return { version: 8, changed: true };
      },
    } as unknown as Client;
    const confirmations = new Confirmations(
      () => 0,
      () => "token",
    );
    const means = { api, confirmations, person: undefined };
    const edit = actTools.find(({ name }) => name === "edit_task") as Tool;
    const given = { task: "order", options: { timeout: "2h" } };
    expect(((await edit.call(given, means)) as Said).answer).toMatchObject({ done: false, confirm: "token" });
    expect(sent).toEqual([]);
    await edit.call({ ...given, confirm: "token" }, means);
    expect(sent).toEqual([[given, { ifVersion: 7 }]]);
  });
});
