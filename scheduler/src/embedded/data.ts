import { randomBytes } from "node:crypto";
import { chown, mkdir, open, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { CarillonError } from "../base/errors.ts";
import type { Binaries } from "./binaries.ts";
import { codeOf, fileFailure, serverFailure, throwIfAborted } from "./failure.ts";
import type { Place } from "./place.ts";
import { run } from "./program.ts";
import { authentication, configuration, initdbArguments } from "./settings.ts";

/** The major version of PostgreSQL that created the data; undefined if there is no data yet. */
export async function dataMajor(place: Place): Promise<number | undefined> {
  try {
    return Number.parseInt(await readFile(join(place.data, "PG_VERSION"), "utf8"), 10);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw fileFailure(error, `cannot read ${place.data}`);
  }
}

const marker = ".store";

/** Writes a marker file beside the data. If the data is lost later, the marker shows that the folder held a store and is not new. */
export async function markStore(place: Place): Promise<void> {
  const path = join(place.home, marker);
  const text =
    "This folder holds a Carillon store. Where its data is gone, none is made anew while this file is here.\n";
  try {
    await writeFile(path, text, { flag: "wx" });
    if (place.owner) await chown(path, place.owner.uid, place.owner.gid);
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw fileFailure(error, `cannot write ${path}`);
  }
}

/** Called if there is no data. @throws STORE_MISSING if the folder held a store before, or if `create` is false */
export async function requireNew(place: Place, create: boolean): Promise<void> {
  const names = await readdir(place.home);
  // A store that was created before the marker was introduced is recognised by the server's log.
  const [remains] = [marker, "server.log", "server.log.1"].filter((name) => names.includes(name));
  if (remains !== undefined)
    throw new CarillonError(
      "STORE_MISSING",
      `${place.data} is not there, but ${place.home} held a store: ${remains} is left of it.`,
      {
        hint: `Nothing was made. Bring data/ back, or name the folder it was moved to by the option \`directory\`. To begin with an empty store, move ${place.home} away whole.`,
      },
    );
  if (!create) throw noStore(place.directory);
}

export const noStore = (directory: string): CarillonError =>
  new CarillonError("STORE_MISSING", `There is no store in ${directory}, and none is made unasked here.`, {
    hint: "If there should be one, look whether its disk or volume is mounted and whether this is its folder. For the first start in production (NODE_ENV) ask for a new store: `createStore: true`, or CARILLON_CREATE_STORE=1.",
  });

/**
 * Creates the data folder under a temporary name and renames it when complete, so that `data` is never incomplete, however this process
 * ends. First removes temporary folders of interrupted calls. The caller holds the start lock.
 */
export async function initialise(place: Place, binaries: Binaries, signal: AbortSignal): Promise<void> {
  const draft = `${place.data}.${randomBytes(4).toString("hex")}`;
  try {
    for (const name of await readdir(place.home)) {
      if (/^data\.[0-9a-f]{8}$/.test(name))
        await rm(join(place.home, name), { recursive: true, force: true, maxRetries: 3 });
    }
    await mkdir(draft, { mode: 0o700 });
    if (place.owner) await chown(draft, place.owner.uid, place.owner.gid);
    const made = await run(join(binaries.folder, "initdb"), initdbArguments(draft, binaries.major), {
      owner: place.owner,
      signal,
    });
    throwIfAborted(signal);
    if (made.code !== 0) throw serverFailure("initdb could not make the data", made.output, place.log);
    await overwrite(join(draft, "postgresql.conf"), configuration());
    await overwrite(join(draft, "pg_hba.conf"), authentication);
    await rename(draft, place.data);
    const folder = await open(place.home);
    await folder.sync().finally(() => folder.close());
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    throw fileFailure(error, `cannot make its data in ${place.home}`);
  }
}

/** Overwrites a file; its owner stays the same. The text has been flushed to disk when the promise resolves. */
async function overwrite(path: string, text: string): Promise<void> {
  const file = await open(path, "w");
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** The states DB_SHUTDOWNED and DB_SHUTDOWNED_IN_RECOVERY in PostgreSQL's pg_control.h. */
const cleanStates = [1, 2];

/**
 * True if the last server ended without a shutdown checkpoint, by the state in its control file. The state is a 32-bit number in the
 * machine's byte order, after the system identifier (64 bits) and two version numbers (32 bits each), in all supported versions.
 */
export async function wasInterrupted(place: Place): Promise<boolean> {
  try {
    const control = await readFile(join(place.data, "global", "pg_control"));
    return (
      control.length >= 20 &&
      !cleanStates.includes(
        new Uint32Array(control.buffer.slice(control.byteOffset + 16, control.byteOffset + 20))[0] as number,
      )
    );
  } catch (error) {
    if (codeOf(error) === "ENOENT") return true; // the start of the server will report what is wrong with the folder
    throw fileFailure(error, `cannot read ${place.data}`);
  }
}
