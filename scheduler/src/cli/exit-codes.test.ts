import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { CarillonError, type ErrorCode, errorCodes } from "../base/errors.ts";
import { exitCodeOf, exitCodes } from "./exit-codes.ts";
import { styleOf, uncoloured, wantsColour } from "./screen/style.ts";
import { failureText } from "./screen/terminal.ts";

const of = (code: ErrorCode) => exitCodeOf(new CarillonError(code, ""));

describe("exit codes", () => {
  it("distinguish kinds of failure", () => {
    expect(of("TASK_UNKNOWN")).toBe(3);
    expect(of("RUN_UNKNOWN")).toBe(3);
    for (const code of ["USAGE", "FILE_INVALID", "CRON_NEVER", "OPTION_INVALID", "PAYLOAD_NOT_JSON"] as const)
      expect(of(code)).toBe(2);
    for (const code of Object.keys(errorCodes) as ErrorCode[]) {
      if (/^(STORE|EMBEDDED|COORDINATION)_/.test(code)) expect(of(code)).toBe(4);
    }
    for (const code of ["RUN_STATE", "TIMEOUT", "COMMAND_FAILED", "NODE_NAME_TAKEN", "SETTINGS_DIFFER"] as const)
      expect(of(code)).toBe(1);
    expect(exitCodeOf(new TypeError("x is not a function"))).toBe(70);
  });

  it("are those of docs/reference/cli.md", () => {
    const page = readFileSync(new URL("../../../docs/reference/cli.md", import.meta.url), "utf8");
    const listed = [...page.matchAll(/^\| (\d+) \| [^|]+ \|$/gm)].map(([, code]) => Number(code));
    expect(listed).toEqual(Object.values(exitCodes));
  });
});

describe("a failure", () => {
  const error = new CarillonError("STORE_UNREACHABLE", "the store cannot be reached", { hint: "Start it." });

  it("is shown as a line, a hint and a link to the code's documentation", () => {
    expect(failureText(error, false, uncoloured)).toBe(
      "carillon: STORE_UNREACHABLE: the store cannot be reached\n  hint: Start it.\n  more: docs/reference/errors.md#store_unreachable",
    );
    expect(failureText(new CarillonError("USAGE", "what \u001b[2J"), false, uncoloured)).toBe(
      "carillon: USAGE: what ␛[2J",
    );
  });

  it("is an object in JSON output", () => {
    const { code, message, hint } = error;
    expect(JSON.parse(failureText(error, true, uncoloured))).toEqual({ code, message, hint });
  });

  it("shows its stack only for a bug", () => {
    expect(failureText(error, false, uncoloured)).not.toContain("exit-codes.test");
    expect(failureText(new TypeError("oops"), false, uncoloured)).toContain("exit-codes.test");
    expect(JSON.parse(failureText(new TypeError("oops"), true, uncoloured))).toMatchObject({
      code: "BUG",
      message: "oops",
    });
  });
});

describe("colour", () => {
  it("is used on a terminal unless the user disabled it", () => {
    expect(wantsColour({ isTTY: true }, {}, true)).toBe(true);
    expect(wantsColour({ isTTY: false }, {}, true)).toBe(false);
    expect(wantsColour({ isTTY: true }, { NO_COLOR: "1" }, true)).toBe(false);
    expect(wantsColour({ isTTY: true }, { NO_COLOR: "" }, true)).toBe(true);
    expect(wantsColour({ isTTY: true }, { TERM: "dumb" }, true)).toBe(false);
    expect(wantsColour({ isTTY: true }, {}, false)).toBe(false);
    expect(styleOf(true).bad("")).toBe("");
  });
});
