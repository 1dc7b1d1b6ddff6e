import { chmod, mkdtemp, readFile, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

/** Where the demo keeps its store and its record. */
export interface Stage {
  directory: string;
  record: string;
  /** Removes everything that was made for this demo alone. The server must have stopped. */
  clear(): Promise<void>;
}

/** @param kept the folder for a store that is kept; null: a throw-away folder that is removed with the demo */
export async function setStage(kept: string | null): Promise<Stage> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "carillon-demo-")));
  // Under root the server runs as another user, which must be able to pass through here; the store itself is closed to other users.
  await chmod(folder, 0o755);
  const directory = kept === null ? join(folder, "store") : resolve(kept);
  return {
    directory,
    record: join(folder, "seen"),
    async clear() {
      // If the server's user cannot reach the temporary folder, the store is at the place that this file names.
      const elsewhere = kept === null ? await textOf(join(directory, "location")) : undefined;
      if (elsewhere !== undefined) await rm(elsewhere.trim(), { recursive: true });
      await rm(folder, { recursive: true });
    },
  };
}

async function textOf(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
