import { randomUUID } from "node:crypto";
import { mkdir, open, readFile, rename } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { PayloadStore } from "../../settings/payload-store.ts";

/** Stores payloads as files in a folder that all processes share, in one subfolder per day. */
export const fsPayloads = (folder: string): PayloadStore => ({
  async put(key, text) {
    const path = join(folder, key);
    await mkdir(dirname(path), { recursive: true });
    // The text is written under a temporary name and then renamed, so that readers never see a part of it.
    const partial = `${path}.${randomUUID()}`;
    const file = await open(partial, "wx", 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(partial, path);
  },
  get: (key) =>
    readFile(join(folder, key), "utf8").catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return null;
      throw error;
    }),
});
