import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../../../", import.meta.url));
export const packages = ["zookeeper", "embedded", "console", "scheduler"] as const;

export interface Manifest {
  name: string;
  version: string;
  /** A value is a string where the package exports a plain file, as the console's package does. */
  exports: Record<string, { types: string; default: string } | string>;
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
  keywords?: string[];
  license?: string;
  bin?: Record<string, string>;
}

export const manifestOf = (path: string) => JSON.parse(readFileSync(join(path, "package.json"), "utf8")) as Manifest;

/** Packs a workspace as `npm publish` does. @returns the path of the packed file in `folder` */
export function pack(workspace: string, folder: string): string {
  const args = ["pack", "--silent", "--ignore-scripts", "--pack-destination", folder];
  const { status, stdout, stderr } = spawnSync("npm", args, { cwd: join(root, workspace), encoding: "utf8" });
  if (status !== 0) throw new Error(`npm pack of ${workspace} failed: ${stderr}`);
  return join(folder, stdout.trim());
}
