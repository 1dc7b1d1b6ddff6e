import { createHash } from "node:crypto";
import { type FileHandle, open } from "node:fs/promises";
import { CarillonError, messageOf } from "../../base/errors.ts";

const hashLength = 40;
const lineShape = /^[0-9A-F]{40}(?::\d+)?$/i;
/** More bytes than the longest line has: a hash, a colon, a count and a line ending. */
const lineBytes = 80;
/** How many lines, evenly spread over the file, are checked when the server starts. */
const sampled = 256;
const hint =
  "Give a file of SHA-1 hashes sorted by hash, one to a line, such as haveibeenpwned.com's list in its downloader's single file.";

/**
 * Searches a file of SHA-1 hashes of breached passwords: one "HASH" or "HASH:COUNT" per line, sorted by hash. It is a binary search in the
 * file itself, which may have a billion lines, with about 30 short reads. The file may be replaced as a whole while the server runs.
 */
export class BreachedPasswords {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  /**
   * Checks a sample of the lines.
   * @throws FILE_INVALID if the file cannot be read or is empty, or if sampled lines are not hashes or not sorted
   */
  async check(): Promise<void> {
    await this.#read(async (file, size) => {
      let before = "";
      for (let part = 0; part < sampled; part++) {
        const { hash } = await this.#lineAt(file, Math.floor((size * part) / sampled), size);
        if (hash < before) throw this.#invalid("its lines are not sorted by hash");
        before = hash;
      }
    });
  }

  /** True if the password is in the file. @throws FILE_INVALID */
  async has(password: string): Promise<boolean> {
    const wanted = createHash("sha1").update(password).digest("hex").toUpperCase();
    return this.#read(async (file, size) => {
      // Binary search: if the line exists, its first byte is at an offset of at least `from` and below `to`.
      let [from, to] = [0, size];
      while (from < to) {
        const { hash, begins, ends } = await this.#lineAt(file, Math.floor((from + to) / 2), size);
        if (hash === wanted) return true;
        if (hash < wanted) from = ends;
        else to = begins;
      }
      return false;
    });
  }

  /** The line that contains the byte at offset `place`. */
  async #lineAt(
    file: FileHandle,
    place: number,
    size: number,
  ): Promise<{ hash: string; begins: number; ends: number }> {
    const first = Math.max(0, place - lineBytes);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(2 * lineBytes), 0, 2 * lineBytes, first);
    const text = buffer.toString("latin1", 0, bytesRead);
    const at = place - first;
    const begins = at === 0 ? 0 : text.lastIndexOf("\n", at - 1) + 1;
    const newline = text.indexOf("\n", at);
    const ends = newline < 0 ? bytesRead : newline + 1;
    const line = text.slice(begins, ends).trimEnd();
    if (!lineShape.test(line) || (newline < 0 && first + ends < size)) throw this.#invalid("a line of it is no hash");
    return { hash: line.slice(0, hashLength).toUpperCase(), begins: first + begins, ends: first + ends };
  }

  async #read<T>(use: (file: FileHandle, size: number) => Promise<T>): Promise<T> {
    let file: FileHandle;
    try {
      file = await open(this.#path, "r");
    } catch (error) {
      throw this.#invalid(messageOf(error));
    }
    try {
      const { size } = await file.stat();
      if (size === 0) throw this.#invalid("it is empty");
      return await use(file, size);
    } finally {
      await file.close();
    }
  }

  #invalid(what: string): CarillonError {
    return new CarillonError("FILE_INVALID", `breachedPasswords, ${this.#path}: ${what}`, { hint });
  }
}
