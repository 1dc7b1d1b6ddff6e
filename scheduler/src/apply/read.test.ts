import { describe, expect, it } from "vitest";
import { defineTask } from "../task/task.ts";
import { writtenTask } from "../task/written.ts";
import { readTasks, readYaml } from "./read.ts";
import { writeYaml } from "./write.ts";

const problems = (text: string) =>
  readYaml("tasks.yaml", text).problems.map(({ line, path, code }) => [line, path, code]);

describe("a file of tasks", () => {
  it.each(["12345678901234567890", "9007199254740993", ".inf", "-.Inf", ".nan", "1e400", "0x3fffffffffffff"])(
    "refuses the number %s, which cannot be represented exactly",
    (number) => {
      const text = `tasks:\n  one:\n    schedule: { every: 5m }\n    slotPayload:\n      amount: ${number}\n`;
      const [problem, ...more] = readYaml("tasks.yaml", text).problems;
      expect(more).toEqual([]);
      expect(problem).toMatchObject({ line: 5, code: "FILE_INVALID", hint: "Give it as a text, in quotes." });
      expect(problem?.message).toContain(number);
    },
  );

  it("refuses merge keys with a hint, and reads a quoted << as a name", () => {
    const text = (payload: string) =>
      `tasks:\n  one:\n    schedule: { every: 5m }\n    slotPayload: &base { a: 1 }\n  two:\n    schedule: { every: 5m }\n    slotPayload:\n      ${payload}\n`;
    for (const merge of ["<<: *base", "<<: [*base]", "<<: { a: 1 }"])
      expect(readYaml("tasks.yaml", text(merge)).problems, merge).toEqual([
        expect.objectContaining({
          line: 8,
          code: "FILE_INVALID",
          message: expect.stringContaining("<<"),
          hint: expect.stringContaining("Write out what it stands for"),
        }),
      ]);
    for (const name of ['"<<": { a: 1 }', "<<: text"])
      expect(readYaml("tasks.yaml", text(name)).problems, name).toEqual([]);
  });

  it.each(["0.1", "+1", "-.5", "1_000", "0x1F", "1e3", "007", "100000000000000000000"])("reads %s", (number) => {
    const text = `tasks:\n  one:\n    schedule: { every: 5m }\n    slotPayload:\n      amount: ${number}\n`;
    expect(readYaml("tasks.yaml", text).problems).toEqual([]);
  });

  it("has alarm rules and hooks, writes them as it reads them, and reports each of their mistakes", () => {
    const text = `alarms:
  done: { kind: deadline, by: "06:00", zone: UTC, channels: [ops] }
  10: { kind: queue, more: 1 }
hooks:
  bank: { scheme: bearer, secret: bank, task: settle }
`;
    const read = readYaml("t.yaml", text);
    expect([read.problems, read.tasks]).toEqual([[], []]);
    expect(read.items.map(({ item, name, line }) => [item, name, line])).toEqual([
      ["alarm", "10", 3],
      ["alarm", "done", 2],
      ["hook", "bank", 5],
    ]);
    const again = readYaml("t.yaml", writeYaml([], "b", "", read.items)).items;
    expect(again.map(({ line: _, ...one }) => one)).toEqual(read.items.map(({ line: _, ...one }) => one));
    const wrong = `alarms:
  done: { kind: ended, more: 1, chanels: [ops] }
  test: { kind: ended }
  none:
hooks:
  "a b": { scheme: bearer, secret: bank, task: settle }
  bank: { scheme: sha1, secret: bank, task: other/settle, delay: never }
`;
    expect(problems(wrong)).toEqual([
      [2, "alarms.done.more", "OPTION_INVALID"],
      [2, "alarms.done.chanels", "OPTION_INVALID"],
      [3, "alarms.test", "OPTION_INVALID"],
      [4, "alarms.none", "OPTION_INVALID"],
      [6, "hooks.a b", "OPTION_INVALID"],
      [7, "hooks.bank.scheme", "OPTION_INVALID"],
    ]);
    expect(problems("alarms: [1]\nhooks: 3\ntasks:\n")).toEqual([
      [1, "alarms", "FILE_INVALID"],
      [2, "hooks", "FILE_INVALID"],
    ]);
    expect(readTasks("t.ts", { alarms: { done: { kind: "ended" } } }).items).toMatchObject([{ line: null }]);
  });

  it("reports every mistake with its line and path", () => {
    const text = `bundle: ""
tasks:
  good:
    schedule: { every: 5m, mode: delay }
  many:
    retry:
      backoff: fixed
      attempts: many
  cron: { schedule: "61 * * * *" }
  odd:
    timeout: 1h
    colour: red
  "bad name!": {}
  empty:
    group:
jobs: 3
`;
    expect(problems(text)).toEqual([
      [16, "jobs", "FILE_INVALID"],
      [1, "bundle", "OPTION_INVALID"],
      [8, "tasks.many.retry.attempts", "TASK_INVALID"],
      [9, "tasks.cron.schedule", "CRON_INVALID"],
      [12, "tasks.odd.colour", "TASK_INVALID"],
      [13, "tasks.bad name!", "TASK_INVALID"],
      [15, "tasks.empty.group", "TASK_INVALID"],
    ]);
    expect(readYaml("tasks.yaml", text).tasks.map(({ definition }) => definition.name)).toEqual(["good"]);
  });

  it("reports all mistakes of one task, but none that only follows from another mistake", () => {
    const text = `tasks:
  settle:
    schedule: { cron: "61 * * * *" }
    misfire: never
    overlap: sometimes
    tiemout: 1h
    retry: { attempts: 0 }
    slotPayload: { ledger: eu }
    blackout: [{ from: "22:00", to: "06:00" }]
  waits:
    schedule: { every: 5m, mode: delay }
    blackout: [{ from: "22:00", to: "06:00" }]
    priority: 11
`;
    expect(problems(text)).toEqual([
      [3, "tasks.settle.schedule", "CRON_INVALID"],
      [4, "tasks.settle.misfire.policy", "TASK_INVALID"],
      [5, "tasks.settle.overlap", "TASK_INVALID"],
      [6, "tasks.settle.tiemout", "TASK_INVALID"],
      [7, "tasks.settle.retry.attempts", "TASK_INVALID"],
      [12, "tasks.waits.blackout", "TASK_INVALID"],
      [13, "tasks.waits.priority", "TASK_INVALID"],
    ]);
  });

  it.each([
    ["tasks: [1", 1],
    ["tasks:\n  a: {}\n  a: {}\n", 3],
    ["tasks:\n\ta: {}", 2],
    ["- a\n- b", 1],
    ["just text", 1],
    ["", null],
    ["tasks: 5", 1],
    ["a: &a [x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\ntasks: [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]", null],
  ])("is refused if it is not a task file: %j", (text, line) => {
    const [first] = readYaml("tasks.yaml", text).problems;
    expect(first).toMatchObject({ code: "FILE_INVALID", hint: expect.stringMatching(/\w/) });
    if (line !== null) expect(first?.line).toBe(line);
  });

  it("may contain no tasks, and reads on, off and timestamps as texts", () => {
    expect(readYaml("tasks.yaml", "bundle: b\ntasks:\n")).toMatchObject({ bundle: "b", tasks: [], problems: [] });
    const { tasks } = readYaml(
      "t.yaml",
      "tasks:\n  a:\n    after: { tasks: b, on: any }\n  b: { schedule: { at: 2027-01-01T00:00:00Z } }",
    );
    expect(tasks.map(({ definition }) => definition)).toEqual([
      defineTask("a", { after: { tasks: "b", on: "any" } }),
      defineTask("b", { schedule: { type: "at", atMs: Date.UTC(2027, 0, 1) } }),
    ]);
  });

  it("that is a module is checked in the same way", () => {
    expect(readTasks("t.ts", { tasks: { a: { retry: {} } } }).problems).toMatchObject([
      { line: null, path: "tasks.a.retry.attempts" },
    ]);
    expect(readTasks("t.ts", 5).problems).toMatchObject([{ code: "FILE_INVALID" }]);
  });

  it("is written so that reading it gives the same tasks, whatever the texts and comments contain", () => {
    const nasty = 'a: b # c\n- *x "y" \u0007 é\u2028';
    const definitions = [
      defineTask("10", { description: nasty, slotPayload: { [nasty]: [nasty, "null", "1e3", "yes", ""] } }),
      defineTask("2", {
        schedule: { type: "cron", expression: "*/5 * * * *", zone: "UTC", gap: "skip", overlap: "both" },
      }),
    ];
    const toWrite = definitions.map((definition) => ({
      name: definition.name,
      written: writtenTask(definition),
      comment: nasty,
    }));
    const text = writeYaml(toWrite, "b", `first\r\n\u2028tasks: {}`);
    expect(text).toContain('schedule: { cron: "*/5 * * * *", zone: UTC }');
    const read = readYaml("t.yaml", text);
    expect(read).toMatchObject({ bundle: "b", problems: [] });
    expect(read.tasks.map(({ definition }) => definition)).toEqual(expect.arrayContaining(definitions));
    expect(readYaml("t.yaml", writeYaml([], null)).problems).toEqual([]);
  });
});
