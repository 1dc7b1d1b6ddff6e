import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { programVersion } from "./program-version.ts";

const folder = mkdtempSync(join(tmpdir(), "carillon-version-"));
afterAll(() => rmSync(folder, { recursive: true }));

const file = (path: string, text: string): string => {
  const whole = join(folder, path);
  mkdirSync(dirname(whole), { recursive: true });
  writeFileSync(whole, text);
  return whole;
};

it("is the version in the nearest package.json above the main script, or above the working folder", () => {
  const script = file("app/dist/main.js", "");
  const installed = file("app/node_modules/runner/main.js", "");
  const own = file("carillon/main.js", "");
  const elsewhere = join(folder, "none");
  mkdirSync(elsewhere);
  file("app/package.json", '{"name": "billing", "version": "2.7.0"}');
  file("app/dist/package.json", '{"type": "module"}');
  file("app/node_modules/runner/package.json", '{"name": "runner", "version": "9.0.0"}');
  file("carillon/package.json", '{"name": "carillon", "version": "0.1.0"}');
  file("package.json", "not JSON");

  expect(programVersion(script, elsewhere)).toBe("2.7.0");
  expect(programVersion(join(folder, "app/gone.js"), elsewhere), "a script that is no file").toBe("unversioned");
  expect(programVersion(undefined, join(folder, "app")), "no script").toBe("2.7.0");
  expect(programVersion(installed, join(folder, "app")), "a runner").toBe("2.7.0");
  expect(programVersion(installed, elsewhere)).toBe("unversioned");
  expect(programVersion(own, join(folder, "app")), "the command line").toBe("2.7.0");
});
