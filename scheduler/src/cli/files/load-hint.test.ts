import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { loadHint } from "./load-hint.ts";

const folder = mkdtempSync(join(tmpdir(), "carillon-hint-"));
afterAll(() => rmSync(folder, { recursive: true }));
writeFileSync(join(folder, "mail.ts"), "export const mail = 1;\n");
writeFileSync(join(folder, "typed.js"), "const count: number = 1;\n");
writeFileSync(join(folder, "plain.js"), 'import { post } from "./mail.ts";\npost();\n');
writeFileSync(join(folder, "broken.js"), "const count = = 1;\n");

const hintFor = (name: string, error: unknown) => {
  const message = error instanceof Error ? error.message : String(error);
  return loadHint({ error, message, file: join(folder, name), shown: name, exported: ["carillon", "cron"] });
};
const withUrl = (text: string, name: string) =>
  Object.assign(new Error(text), { url: pathToFileURL(join(folder, name)).href });

describe("the hint for a module that cannot be loaded", () => {
  it.each([
    [
      "enum.ts",
      new SyntaxError("TypeScript enum is not supported in strip-only mode"),
      /an object in place of an enum/,
    ],
    ["typed.js", new SyntaxError("Missing initializer in const declaration"), /name it typed\.ts\./],
    ["typed.js", new Error("ParseError: Missing initializer in const declaration."), /name it typed\.ts\./],
    [
      "a.mjs",
      new ReferenceError("require is not defined in ES module scope, you can use import instead"),
      /name it \.cjs/,
    ],
    ["a.ts", new ReferenceError("module is not defined in ES module scope"), /in place of require.*name it \.cts/],
    ["a.cjs", new SyntaxError("Cannot use import statement outside a module"), /name it \.mjs/],
    ["a.ts", new SyntaxError("Cannot use import statement outside a module"), /name it \.mts.*"type": "module"/],
    [
      "a.ts",
      new SyntaxError("The requested module 'carillon' does not provide an export named 'chron'"),
      /"carillon" exports no "chron"; did you mean "cron"\?/,
    ],
    ["a.ts", new TypeError("(0 , _carillon.chron) is not a function"), /did you mean "cron"\?/],
    ["a.ts", new TypeError("(0 , _carillon.default) is not a function"), /import \{ carillon \} from "carillon"/],
    ["a.ts", withUrl("Cannot find module '/x/mail.js' imported from a.ts", "mail.js"), /import … from "\.\/mail\.ts"/],
    ["a.ts", withUrl("Cannot find module '/x/mail' imported from a.ts", "mail"), /import … from "\.\/mail\.ts"/],
    [
      "a.ts",
      withUrl("Cannot find module '/x/away.js' imported from a.ts", "away.js"),
      /Correct the path of the import/,
    ],
    ["a.ts", new Error("Cannot find package 'dayjs' imported from a.ts"), /npm install dayjs/],
    ["tasks.json", new TypeError('needs an import attribute of "type: json"'), /carillon apply tasks\.json/],
    ["tasks.py", new TypeError('Unknown file extension ".py"'), /Give a JavaScript or TypeScript module/],
    ["a.ts", "a text that was thrown", /Correct a\.ts/],
  ])("%s: %s", (name, error, hint) => {
    expect(hintFor(name, error)).toMatch(hint);
  });

  it("does not mistake JavaScript with a wrong import name for TypeScript", () => {
    const error = new SyntaxError("The requested module './mail.ts' does not provide an export named 'post'");
    expect(hintFor("plain.js", error)).not.toMatch(/TypeScript/);
  });

  it("does not mistake broken JavaScript for TypeScript", () => {
    expect(hintFor("broken.js", new SyntaxError("Unexpected token '='"))).not.toMatch(/TypeScript/);
  });
});
