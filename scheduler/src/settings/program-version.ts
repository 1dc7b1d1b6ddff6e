import { readFileSync, realpathSync } from "node:fs";
import { dirname, join, sep } from "node:path";

interface Package {
  name?: unknown;
  version?: unknown;
}

/**
 * Returns the version of the program that this process executes: the version in the nearest package.json above its main script,
 * else above the working directory. A main script inside node_modules is ignored, because it belongs to a test runner or to a
 * tool that supervises processes. Carillon's own package.json is skipped, because its command line executes other programs. If
 * there is no version, the result is "unversioned", which never counts as newer than another release.
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
    return undefined; // The main script is not a file: `node --eval`, or a bundle that was moved.
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
    return {}; // This folder has no readable package.json, but a folder above may have one.
  }
}
