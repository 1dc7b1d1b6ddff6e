import { chmod, mkdtemp, readFile, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

/** The folder of the demo's store, and the path of the file with the recorded starts. */
export interface Stage {
  directory: string;
  record: string;
  /** Removes the temporary files. The embedded server must have stopped. */
  clear(): Promise<void>;
}

/** @param kept the folder for a store that the user keeps; null: a temporary folder that `clear` removes */
export async function setStage(kept: string | null): Promise<Stage> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "carillon-demo-")));
  // If this process runs as root, the server runs as another user, who must be able to enter this folder; the store itself is private.
  await chmod(folder, 0o755);
  const directory = kept === null ? join(folder, "store") : resolve(kept);
  return {
    directory,
    record: join(folder, "seen"),
    async clear() {
      // If the server's user cannot reach the temporary folder, the store is elsewhere; the file `location` contains its path.
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
