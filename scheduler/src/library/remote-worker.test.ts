import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

/** Returns the modules that a program loads if it imports "carillon/worker". Imports of types are not followed. */
function loaded(entry: URL, found = new Set<string>()): Set<string> {
  if (found.has(entry.href)) return found;
  found.add(entry.href);
  const text = readFileSync(entry, "utf8");
  for (const [, names = "", specifier = ""] of text.matchAll(
    /^(?:import|export)\s+(?!type\b)([^;]*?)from\s+"([^"]+)"/gms,
  )) {
    const typesOnly =
      /^\{/.test(names) &&
      names
        .slice(1, names.lastIndexOf("}"))
        .split(",")
        .every((one) => /^\s*(type\s|$)/.test(one));
    if (typesOnly) continue;
    if (specifier.startsWith(".")) loaded(new URL(specifier, entry), found);
    else found.add(specifier);
  }
  return found;
}

test("carillon/worker loads neither pg, nor a coordination service, nor the server", () => {
  const all = [...loaded(new URL("./remote-worker.ts", import.meta.url))];
  const files = all.filter((one) => one.startsWith("file:")).map((one) => fileURLToPath(one));
  expect(files.length).toBeGreaterThan(20);
  expect(files.every((path) => existsSync(path))).toBe(true);
  expect(files.filter((path) => /\/(?:store\/postgres|coordination|http|embedded|engine|cli)\//.test(path))).toEqual(
    [],
  );
  const packages = all.filter((one) => !one.startsWith("file:") && !one.startsWith("node:"));
  expect(packages).toEqual([]);
});
