import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { curatorClasspath, javaProgram } from "./servers.ts";

const sources = fileURLToPath(new URL("../java", import.meta.url));
const cache = fileURLToPath(new URL("../../../node_modules/.cache", import.meta.url));

/**
 * Returns the folder with the compiled classes of test/java. After a change of the sources, the first test process compiles them. The
 * classes are cached on disk, because `javac` takes seconds.
 */
export async function javaClasses(): Promise<string> {
  const files = readdirSync(sources).filter((name) => name.endsWith(".java"));
  const hash = createHash("sha256");
  for (const file of files) hash.update(file).update(readFileSync(join(sources, file)));
  const classes = join(cache, `zookeeper-java-${hash.digest("hex").slice(0, 16)}`);
  if (existsSync(classes)) return classes;

  mkdirSync(cache, { recursive: true });
  const fresh = mkdtempSync(join(cache, "javac-"));
  const flags = ["--release", "11", "-nowarn", "-d", fresh, "-cp", curatorClasspath()];
  await promisify(execFile)(javaProgram("javac"), [...flags, ...files.map((file) => join(sources, file))]);
  try {
    renameSync(fresh, classes);
  } catch (error) {
    rmSync(fresh, { recursive: true, force: true });
    if (!existsSync(classes)) throw error; // otherwise another process has compiled the same classes first
  }
  return classes;
}
