import { spawn } from "node:child_process";
import { messageOf } from "../base/errors.ts";

/** The unprivileged user that runs the server if this process is root. */
export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

export interface Outcome {
  /** The exit code; -1 if the program could not be started or was killed by a signal. */
  readonly code: number;
  readonly output: string;
}

const outputBytes = 64 * 1024;

/**
 * The environment of the server. Only the search paths come from the user's environment: variables such as PGDATA would change
 * the server's behaviour, secrets would stay in a process that outlives this one, and LC_ALL would change the language of the
 * log, which Carillon parses.
 */
export function serverEnvironment(): NodeJS.ProcessEnv {
  const { PATH, LD_LIBRARY_PATH, DYLD_LIBRARY_PATH } = process.env;
  return { PATH, LD_LIBRARY_PATH, DYLD_LIBRARY_PATH, LC_ALL: "C", TZ: "UTC" };
}

/** Runs a short program until it ends, and returns its exit code and the last 65,536 characters of its output. */
export function run(
  file: string,
  args: readonly string[],
  options: { owner?: Owner | undefined; signal?: AbortSignal } = {},
): Promise<Outcome> {
  return new Promise((resolve) => {
    const child = spawn(file, args, {
      cwd: "/",
      env: serverEnvironment(),
      stdio: ["ignore", "pipe", "pipe"],
      uid: options.owner?.uid,
      gid: options.owner?.gid,
      signal: options.signal,
      killSignal: "SIGKILL",
    });
    let output = "";
    const keep = (chunk: Buffer) => {
      output = (output + chunk.toString("utf8")).slice(-outputBytes);
    };
    child.stdout.on("data", keep);
    child.stderr.on("data", keep);
    let failed: unknown;
    child.on("error", (error) => {
      failed = error;
      if (child.pid === undefined) resolve({ code: -1, output: messageOf(error) });
    });
    child.on("close", (code) => resolve({ code: code ?? -1, output: output || (failed ? messageOf(failed) : "") }));
  });
}
