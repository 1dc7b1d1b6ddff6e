import { readFileSync, realpathSync } from "node:fs";
import { dirname, join, sep } from "node:path";

interface Package {
  name?: unknown;
  version?: unknown;
}

/**
 * The version of the program that this process runs: that of the nearest package.json above its main script, else above the working folder.
 * An installed main script does not count, because it belongs to a test runner or a process manager. Carillon's own package.json is
 * skipped, because its command line runs other programs. Without a version the result is a text that is no number, which never counts as
 * newer.
 */
export function programVersion(script = process.argv[1], folder = process.cwd()): string {
  return versionAbove(scriptFolder(script)) ?? versionAbove(folder) ?? "unversioned";
}

function scriptFolder(script: string | undefined): string | undefined {
  if (script === undefined) return undefined;
  try {
    const folder = dirname(realpathSync(script));
    return folder.split(sep).includes("node_modules") ? undefined : folder;
  } catch {
    return undefined; // the main script is no file: `node --eval`, or a bundle that was moved away
  }
}

function versionAbove(folder: string | undefined): string | undefined {
  for (let at = folder; at !== undefined; at = dirname(at) === at ? undefined : dirname(at)) {
    const { name, version } = packageIn(at);
    if (typeof version === "string" && version !== "" && name !== "carillon") return version.slice(0, 100);
  }
  return undefined;
}

function packageIn(folder: string): Package {
  try {
    const found: unknown = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    return typeof found === "object" && found !== null ? found : {};
  } catch {
    return {}; // there is no readable package.json here; the next folder up may have one
  }
}
