import { spawn } from "node:child_process";
import { type FileHandle, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { pause, systemClock } from "../base/clock.ts";
import { CarillonError } from "../base/errors.ts";
import type { Binaries } from "./binaries.ts";
import { fileFailure, serverFailure } from "./failure.ts";
import { boundLog, freeBytes, readLog } from "./log-file.ts";
import type { Place } from "./place.ts";
import { serverProcesses, signalProcess } from "./processes.ts";
import { serverEnvironment } from "./program.ts";
import { fixedSettings, socketName } from "./settings.ts";

/** A server that this process has just started. */
export interface Launch {
  /** Undefined while the server runs; "taken" if another server uses the data; otherwise the error with which the server ended. */
  outcome(): Promise<undefined | "taken" | CarillonError>;
  /** Ends the server and waits until it has ended. */
  end(): Promise<void>;
}

/**
 * Starts the server in a session of its own and without a pipe to this process, so that neither this process's death nor a Ctrl-C in its
 * terminal affects the server.
 */
export async function launch(place: Place, binaries: Binaries): Promise<Launch> {
  await boundLog(place.log);
  const log = await openLog(place, binaries);
  try {
    const child = spawn(join(binaries.folder, "postgres"), ["-D", place.data, ...fixedSettings()], {
      cwd: "/",
      env: serverEnvironment(),
      detached: true,
      stdio: ["ignore", log.file.fd, log.file.fd],
      uid: place.owner?.uid,
      gid: place.owner?.gid,
    });
    const ended = new Promise<string>((resolve) => {
      child.once("error", (error) => resolve(error.message));
      child.once("exit", (code, signal) => resolve(signal ?? `exit code ${code}`));
    });
    let end: string | undefined;
    void ended.then((how) => {
      end = how;
    });
    child.unref();
    return {
      async end() {
        // Uses the child object instead of a pid, because a child that could not be spawned has no pid.
        child.kill("SIGINT");
        while (end === undefined) await pause(systemClock, 10);
      },
      async outcome() {
        if (end === undefined) return undefined;
        const said = await readLog(place.log, log.offset);
        if (/lock file ".*" already exists|is another postmaster|shared memory block .* is still in use/.test(said))
          return "taken";
        return serverFailure(`the server ended at its start (${end})`, said, place.log, await freeBytes(place.home));
      },
    };
  } finally {
    await log.file.close();
  }
}

/** Opens the server's log and writes a line that marks this start, which also proves that the log can be written. */
async function openLog(place: Place, binaries: Binaries) {
  let file: FileHandle | undefined;
  try {
    file = await open(place.log, "a", 0o600);
    const offset = (await file.stat()).size;
    if (place.owner) await file.chown(place.owner.uid, place.owner.gid);
    const now = new Date(systemClock.wall()).toISOString();
    await file.write(`${now} carillon: starting PostgreSQL ${binaries.version}\n`);
    return { file, offset };
  } catch (error) {
    await file?.close();
    throw fileFailure(error, `cannot write its log ${place.log}`);
  }
}

const orphanGraceMs = 500;
const orphanEndMs = 10_000;

/**
 * Waits until the child processes of a dead server have ended, and kills those that are still running after `orphanGraceMs`,
 * because they may write to the data. Then removes the dead server's pid file and its socket's lock file: PostgreSQL would trust
 * the pid in them, even if another process has that pid now. The caller holds the start lock, and no server is running.
 * @throws EMBEDDED_FAILED if child processes still run after `orphanEndMs`; STORE_READ_ONLY
 */
export async function clearRemains(place: Place, log: (line: string) => void): Promise<void> {
  const began = systemClock.monotonic();
  for (let signal: NodeJS.Signals | undefined; ; ) {
    const { children } = await serverProcesses(place.data);
    if (children.length === 0) break;
    const waited = systemClock.monotonic() - began;
    if (waited > orphanEndMs) {
      throw new CarillonError("EMBEDDED_FAILED", `Processes of a dead server do not end: ${children.join(", ")}.`, {
        hint: "They use the store's data, so no new server may start before they are gone.",
      });
    }
    if (waited > orphanGraceMs && signal === undefined) {
      signal = "SIGKILL";
      log(`ending ${children.length} left-over processes of a dead server`);
      for (const pid of children) signalProcess(pid, signal);
    }
    await pause(systemClock, 10);
  }
  try {
    await rm(join(place.data, "postmaster.pid"), { force: true });
    await rm(join(place.run, `${socketName}.lock`), { force: true });
  } catch (error) {
    throw fileFailure(error, "cannot remove the pid files of a dead server");
  }
}

const stopMs = 60_000;

/**
 * Stops the server in the mode "fast" (ends sessions and writes a checkpoint), and waits until it has ended.
 * @throws EMBEDDED_FAILED if it has not ended after `stopMs`
 */
export async function stop(place: Place, postmaster: number, log: (line: string) => void): Promise<void> {
  const began = systemClock.monotonic();
  signalProcess(postmaster, "SIGINT");
  while ((await serverProcesses(place.data)).postmaster === postmaster) {
    if (systemClock.monotonic() - began > stopMs) {
      throw new CarillonError("EMBEDDED_FAILED", `The embedded server did not stop within ${stopMs / 1000} s.`, {
        hint: `It is process ${postmaster}; its log is ${place.log}.`,
      });
    }
    await pause(systemClock, 10);
  }
  log("stopped the embedded PostgreSQL");
}
