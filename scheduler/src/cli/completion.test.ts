import { Command } from "commander";
import { describe, expect, it } from "vitest";
import { completionOf, wordsOf } from "./completion.ts";
import { commands } from "./program.ts";
import { Terminal } from "./screen/terminal.ts";

const program = commands(new Terminal({ json: false, colour: false }), () => undefined);
const of = (line: string) => completionOf(program, wordsOf(line).slice(1));
const words = (line: string) => of(line).candidates.map(({ value }) => value);

describe("completion", () => {
  it("suggests commands, then subcommands, filtered by the typed prefix", () => {
    expect(words("carillon ")).toEqual(expect.arrayContaining(["dev", "tasks", "runs", "login", "completion", "top"]));
    expect(words("carillon ru")).toEqual(["runs"]);
    expect(words("carillon tasks re")).toEqual(["resume", "revert"]);
    expect(words("carillon --json tasks sh")).toEqual(["show"]);
    expect(of("carillon ").candidates.find(({ value }) => value === "doctor")?.description).toMatch(
      /^Look for what is wrong/,
    );
  });

  it("suggests a command's own options, the global options and their choices", () => {
    expect(words("carillon runs list --s")).toEqual([
      "--state",
      "--since",
      "--source",
      "--store",
      "--server",
      "--schema",
    ]);
    expect(words("carillon runs list --state fa")).toEqual(["failed"]);
    expect(of("carillon runs list --state=fa")).toMatchObject({
      before: "--state=",
      candidates: [{ value: "failed" }],
    });
    expect(words("carillon completion z")).toEqual(["zsh"]);
    expect(words("carillon top --sort la")).toEqual(["late"]);
  });

  it("recognises where names of cluster objects and where file names are expected", () => {
    const named = ["tasks show ", "tasks pause a b ", "tasks run --wait ", "runs tail --task ", "export "];
    for (const line of named) expect([line, of(`carillon ${line}`).named]).toEqual([line, "tasks"]);
    expect(of("carillon tasks run --payload '{\"a\": 1}' eu:se")).toMatchObject({ named: "tasks", beginning: "eu:se" });
    expect(of("carillon calendars show d").named).toBe("calendars");
    expect(of("carillon groups limit ").named).toBe("groups");
    expect(of("carillon keys revoke ").named).toBe("keys");
    expect(of("carillon --profile ").named).toBe("profiles");
    for (const line of ["apply ", "dev ", "dev --alarms ", "calendars set x --ics "])
      expect([line, of(`carillon ${line}`).files]).toEqual([line, true]);
    expect(of("carillon runs show ")).toMatchObject({ named: null, files: false, candidates: [] });
  });

  it("reads the options that select the cluster from the line", () => {
    const line = "carillon --server http://a:1 tasks show --schema=other --profile x ";
    expect(of(line).options).toEqual({ server: ["http://a:1"], schema: "other", profile: "x" });
  });

  it("splits a line as a shell does, up to the word being typed", () => {
    expect(wordsOf("carillon tasks  run")).toEqual(["carillon", "tasks", "run"]);
    expect(wordsOf(`c 'a b' "c\\"d" e\\ f `)).toEqual(["c", "a b", 'c"d', "e f", ""]);
    expect(wordsOf("c 'not closed")).toEqual(["c", "not closed"]);
  });

  it("works for any command tree", () => {
    const other = new Command("other").option("-o, --output <FILE>", "where");
    other.command("go <way>").addHelpText("after", "");
    expect(completionOf(other, ["g"]).candidates).toEqual([{ value: "go", description: "" }]);
    expect(completionOf(other, ["-o", ""])).toMatchObject({ files: true });
  });
});
