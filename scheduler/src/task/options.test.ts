import { readFileSync } from "node:fs";
import { describe, expect, expectTypeOf, it } from "vitest";
import { taskOptions as contract } from "../api/contract/task-options.ts";
import { optionsPage } from "../api/options-page.ts";
import { readYaml } from "../apply/read.ts";
import { writeYaml } from "../apply/write.ts";
import { partsToSet } from "../cli/tasks/parts-to-set.ts";
import { edited, editedParts, partCalled, reverted } from "./edits.ts";
import {
  type OptionName,
  optionNames,
  optionRows,
  type TaskOptions,
  type TaskPart,
  type taskOptions,
  usualWritten,
} from "./options.ts";
import { defineTask, definitionText } from "./task.ts";
import { fieldChanges, givenOptions, readWritten, writtenTask } from "./written.ts";

const read = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8");

describe("the table of task options", () => {
  it("has a row for each option and each part of a definition, and no other", () => {
    expectTypeOf<OptionName>().toEqualTypeOf<keyof TaskOptions>();
    expectTypeOf<keyof typeof taskOptions>().toEqualTypeOf<keyof TaskOptions>();
    expectTypeOf<(typeof taskOptions)[OptionName]["part"]>().toEqualTypeOf<TaskPart>();
    const parts = optionRows.map(([, { part }]) => part);
    expect(new Set(parts).size).toBe(parts.length);
  });

  it("has the same text as the comment of each option's type", () => {
    const said = new Map(
      [...read("options.ts").matchAll(/\/\*\* ([^\n]*) \*\/\n {2}(\w+)\?:/g)].map(([, comment, option]) => [
        option as string,
        comment as string,
      ]),
    );
    for (const [option, row] of optionRows) {
      const usual = usualWritten(row);
      const isPlain = typeof usual === "string" || typeof usual === "number";
      const wanted = `${row.description}${isPlain ? ` Default ${JSON.stringify(usual)}.` : ""}`;
      expect([option, said.get(option)]).toEqual([option, wanted]);
    }
  });

  it("is the same as docs/reference/task-options.md (npm run build; node scripts/task-options.mjs)", () => {
    expect(read("../../../docs/reference/task-options.md")).toBe(optionsPage());
  });

  it("has one-sentence descriptions, versions, and examples that differ from the defaults", () => {
    for (const [option, row] of optionRows) {
      expect([option, row.description]).toEqual([option, expect.stringMatching(/^[A-Z].*\.$/)]);
      expect([option, row.since]).toEqual([option, expect.stringMatching(/^\d+\.\d+\.\d+$/)]);
      expect([option, row.example]).not.toEqual([option, usualWritten(row)]);
    }
  });
});

describe.each(optionRows)("%s", (option, row) => {
  // The name of a schedule of a task begins with the task's name and a colon, and a schedule must have due times.
  const [name, beside] = option === "of" ? ["digest:weekly", { schedule: "0 2 * * *" }] : ["t", {}];
  const example = { ...beside, [option]: row.example };
  const plain = readWritten(name, beside);
  const definition = readWritten(name, example);
  const usual = { [option]: row.usual } as TaskOptions;

  it("is read and written in the task file's format", () => {
    const written = writtenTask(definition);
    expect(Object.keys(written)).toEqual([...Object.keys(beside), option]);
    expect(definitionText(readWritten(name, written))).toBe(definitionText(definition));
    const yaml = writeYaml([{ name, written: example }], null);
    expect(readYaml("t.yaml", yaml)).toMatchObject({ problems: [], tasks: [{ definition }] });
    expect(fieldChanges(plain, definition).map(({ path }) => path.split(".")[0])).toContain(option);
  });

  it("is absent from a definition, or the default, if it is not given", () => {
    expect([option, row.part in plain]).toEqual([option, row.isAbsent !== true]);
    if (row.usual !== null) expect(defineTask("t", usual)).toEqual(plain);
    if (row.nullable) expect(readWritten(name, { ...beside, [option]: null })).toEqual(plain);
  });

  it("is in the API contract, which accepts the option and no other value for it", () => {
    const given = JSON.parse(JSON.stringify(givenOptions(definition)));
    expect(Object.keys(given)).toContain(option);
    expect(defineTask(name, contract.parse(given) as TaskOptions)).toEqual(definition);
    expect(contract.safeParse({ [option]: null }).success).toBe(row.nullable === true || row.kind.shape.is === "json");
  });

  it("can be edited by its name if it is editable, and reverted", () => {
    const given = { [option]: givenOptions(definition)[option] } as TaskOptions;
    if (!row.editable) {
      expect(() => edited(plain, given)).toThrow(expect.objectContaining({ path: option }));
      return;
    }
    const now = edited(plain, given);
    expect(now[row.part]).toEqual(definition[row.part]);
    expect(editedParts(now)).toEqual([row.part]);
    expect(reverted(now, [row.part])).toEqual(plain);
    expect([partCalled(option), partCalled(row.part)]).toEqual([row.part, row.part]);
    expect(partsToSet.split(", ").map((part) => part.split(" ")[0])).toContain(option);
  });

  it("reports a wrong value with its path", () => {
    if (row.kind.shape.is === "json") return;
    const wrong = { [option]: Symbol("wrong") } as unknown as TaskOptions;
    expect(() => defineTask(name, wrong)).toThrow(
      expect.objectContaining({ path: expect.stringMatching(new RegExp(`^${option}\\b`)) }),
    );
  });
});

describe("an unknown option", () => {
  it.each([
    ["retires", '; did you mean "retry"?'],
    ["Timeout", '; did you mean "timeout"?'],
    ["colour", ""],
    ["constructor", ""],
  ])("%s", (option, meant) => {
    expect(() => defineTask("t", { [option]: 1 } as TaskOptions)).toThrow(
      expect.objectContaining({
        message: `task t: there is no option "${option}"${meant}`,
        path: option,
        hint: `The options are ${optionNames.join(", ")}.`,
      }),
    );
  });

  it("among an option's fields", () => {
    expect(() => defineTask("t", { retry: { atempts: 3 } } as never)).toThrow(
      expect.objectContaining({
        message: 'task t: retry has no "atempts"; did you mean "attempts"?',
        path: "retry.atempts",
      }),
    );
  });
});
