import { afterEach, describe, expect, it, vi } from "vitest";
import type { ImportedTask } from "../../importers/findings.ts";
import { Terminal } from "../screen/terminal.ts";
import { compareImported } from "./compare-imported.ts";

class Heard extends Terminal {
  readonly lines: string[] = [];
  readonly objects_: unknown[] = [];
  override line(text = ""): void {
    this.lines.push(text.trimEnd());
  }
  override object(value: unknown): void {
    this.objects_.push(value);
  }
}

const nowMs = Date.UTC(2026, 10, 26);
const task = (name: string, cron: string, text: string): ImportedTask => ({
  name,
  comment: "",
  written: { schedule: { cron, zone: "UTC" } },
  told: { times: { dialect: "vixie", text, zone: "UTC" }, suspended: false, fromMs: undefined, untilMs: undefined },
});
const good = task("good", "0 9 * * MON", "0 9 * * 1");
const bad = task("bad", "0 9 1 * *", "0 9 1 1-11 *");
const unknown = task("unknown", "0 9 * * *", "H 9 * * *");

describe("import --compare", () => {
  afterEach(() => vi.restoreAllMocks());

  const run = (tasks: ImportedTask[], json = false, remarks: Parameters<typeof compareImported>[1]["remarks"] = []) => {
    const told = vi.spyOn(process.stderr, "write").mockReturnValue(true);
    const terminal = new Heard({ json, colour: false });
    const code = compareImported("crontab", { tasks, remarks }, nowMs, {}, terminal);
    return {
      code,
      lines: terminal.lines,
      objects: terminal.objects_,
      told: told.mock.calls.map(([text]) => text).join(""),
    };
  };

  it("fails if a task fires at other times than its source, and shows those times", () => {
    const { code, lines } = run([good, bad]);
    expect(code).toBe(1);
    expect(lines).toContain("bad: differs  0 9 1 1-11 *");
    expect(lines).toContainEqual(expect.stringMatching(/^ {2}– +2026-12-01 09:00:00 \+00:00 +differs$/));
    expect(lines).toContainEqual(
      expect.stringMatching(/^ {2}2027-01-01 09:00:00 \+00:00 +2027-01-01 09:00:00 \+00:00$/),
    );
    expect(lines.at(-1)).toBe("1 with the same times, 1 that differ, 0 not compared");
  });

  it("succeeds if all times agree, and counts the tasks without a source to compare", () => {
    const { code, lines } = run([good, unknown]);
    expect([code, lines.at(-1)]).toEqual([0, "1 with the same times, 0 that differ, 1 not compared"]);
  });

  it("fails if something was not imported", () => {
    const problem = { kind: "problem", source: "a", message: "m", hint: "h" } as const;
    expect(run([good], false, [problem]).code).toBe(1);
  });

  it("reports a remark that several sources share once, with five of their names", () => {
    const remark = (source: string) => ({ kind: "lost", source, message: "its queue", hint: "Set group." }) as const;
    const { told } = run([good], false, ["a", "b", "c", "d", "e", "f", "g"].map(remark));
    expect(told).toBe(
      "lost: a, b, c, d, e and 2 more: its queue\n  hint: Set group.\n1 tasks, 7 things lost, 0 not imported\n",
    );
  });

  it("writes a single document in JSON output", () => {
    const { code, objects } = run([bad], true);
    expect([code, objects]).toEqual([
      1,
      [{ compared: [expect.objectContaining({ name: "bad", outcome: "differs" })], remarks: [] }],
    ]);
  });

  it("is refused if the task file also goes to standard output", () => {
    const terminal = new Heard({ json: false, colour: false });
    expect(() => compareImported("crontab", { tasks: [], remarks: [] }, nowMs, { output: "-" }, terminal)).toThrow(
      expect.objectContaining({ code: "USAGE" }),
    );
  });
});
