/**
 * Runs a task's command: a program with its arguments, without a shell in between, so arguments are never interpreted. A shell itself can
 * be the program only if the worker allows that program and also shells in general.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { type Clock, systemClock } from "../../base/clock.ts";
import { CarillonError } from "../../base/errors.ts";
import { limits } from "../../base/limits.ts";
import type { CommandSpec } from "../../task/task.ts";
import { type Account, accountFor, type OwnAccount, ownAccount } from "./account.ts";
import { commandEnvironment, type RunMarks } from "./environment.ts";
import { endGroup, endsWithProcess, markName } from "./group.ts";
import { LineReader, type OutputBudget, type OutputStream } from "./output.ts";
import { findProgram, recentProgram } from "./programs.ts";

export type { RunMarks } from "./environment.ts";
export type { OutputStream } from "./output.ts";

export interface CommandOptions {
  /** The programs that may run: absolute paths, or names that are looked up in `path`. If empty, no command runs. */
  allow: readonly string[];
  /** True: programs in `allow` that are shells may run. Default false. */
  shell?: boolean;
  /** True: a dry run that checks allow lists and environment and logs the arguments, but starts no program. Default false. */
  rehearse?: boolean;
  run: RunMarks;
  /** When it aborts, the process group gets SIGTERM, and SIGKILL `graceMs` later. */
  signal: AbortSignal;
  log(stream: OutputStream, line: string): void;
  /** Variables that tasks may set besides LANG, LC_*, TZ, SHELL and PATH: names, or prefixes with `*` such as "APP_*". */
  allowEnv?: readonly string[];
  /** Time between SIGTERM and SIGKILL, in ms; default `limits.commandGraceMs`. */
  graceMs?: number;
  /** The maximum number of bytes of stdout and stderr together that are logged; default `limits.commandOutputBytes`. */
  outputBytesMax?: number;
  clock?: Clock;
  path?: readonly string[];
  own?: OwnAccount;
}

export interface CommandResult {
  /** The program's exit code, which is one of the spec's `okExitCodes`; 0 for a dry run. */
  exitCode: number;
  rehearsed: boolean;
  durationMs: number;
  /** The number of bytes of output that were not logged. */
  cutBytes: number;
}

/** The `cause` of a COMMAND_FAILED error after the program has run. */
export interface CommandFailure {
  exitCode: number | null;
  signal: string | null;
  /** The last lines of stderr. */
  stderr: string[];
}

/**
 * Runs a command. Resolves when the program has exited with a successful code and its output has been closed: as with cron, the
 * run includes background processes that keep the output open.
 * @throws COMMAND_NOT_ALLOWED, TASK_INVALID or OPTION_INVALID before anything is started; COMMAND_FAILED, with a `CommandFailure`
 * as its cause if the program ran (never retried if `retryExitCodes` is set and lacks the exit code); the signal's reason
 * (CANCELLED if that is no CarillonError) once the process group has ended
 */
export async function runCommand(spec: CommandSpec, options: CommandOptions): Promise<CommandResult> {
  const { signal, log, rehearse = false, clock = systemClock } = options;
  const began = clock.monotonic();
  const [name = "", ...args] = spec.argv;
  const program = options.path
    ? findProgram(name, options.allow, options.path)
    : recentProgram(name, options.allow, began);
  if (program.shell && options.shell !== true) {
    throw new CarillonError("COMMAND_NOT_ALLOWED", `${program.file} is a shell, and this worker runs none`, {
      hint: "Call a program or script directly, or turn shells on in the worker's configuration.",
    });
  }
  const account = accountOf(spec.user, options);
  const env = commandEnvironment(spec.env ?? {}, account, options.run, {
    free: program.shell,
    allowed: options.allowEnv,
  });
  const finished = (cutBytes: number, exitCode = 0): CommandResult => ({
    exitCode,
    rehearsed: rehearse,
    durationMs: clock.monotonic() - began,
    cutBytes,
  });
  if (signal.aborted) throw endedBy(signal);
  if (rehearse) {
    log("note", `rehearsal, would run: ${[program.file, ...args].map(quoted).join(" ")}`);
    if (!program.present) log("note", `${program.file} is not installed here`);
    return finished(0);
  }
  if (!program.present) throw notStarted(program.file, "it is not there, or is no program", undefined);

  const most = options.outputBytesMax ?? limits.commandOutputBytes;
  const exhausted = () => log("note", `output cut here: it is more than ${most} bytes`);
  const budget: OutputBudget = { left: most, cut: 0, exhausted };
  const stdout = new LineReader(budget, (line) => log("stdout", line));
  const stderr = new LineReader(budget, (line) => log("stderr", line));
  const mark = randomUUID();
  const child = start(program.file, args, spec, account, { ...env, [markName]: mark });
  const { aborted, ...ended } = await watch(child, program.file, {
    mark,
    stdin: spec.stdin,
    stdout,
    stderr,
    graceMs: options.graceMs ?? limits.commandGraceMs,
    signal,
    clock,
  });
  if (budget.cut > 0) log("note", `${budget.cut} bytes of output were not logged`);
  if (aborted) throw endedBy(signal);
  const { okExitCodes = [0], retryExitCodes } = spec;
  if (ended.exitCode !== null && okExitCodes.includes(ended.exitCode)) return finished(budget.cut, ended.exitCode);
  const isFinal = ended.exitCode !== null && retryExitCodes?.includes(ended.exitCode) === false;
  const failure: CommandFailure = { ...ended, stderr: stderr.last };
  const how = ended.signal === null ? `ended with exit code ${ended.exitCode}` : `was ended by ${ended.signal}`;
  throw new CarillonError("COMMAND_FAILED", withLastLines(`${program.file} ${how}`, stderr.last), {
    hint: "Its output is in the run's log.",
    cause: failure,
    ...(isFinal ? { retryAfterMs: Number.POSITIVE_INFINITY } : {}),
  });
}

/** Appends as many of the last lines as fit, because a program prints the reason for its failure at the end. */
function withLastLines(what: string, lines: readonly string[]): string {
  let said = "";
  for (const line of lines.toReversed()) {
    const longer = said === "" ? line : `${line}\n${said}`;
    if (what.length + longer.length + 2 > limits.errorMessageLength && said !== "") break;
    said = longer;
  }
  return said === "" ? what : `${what}: ${said}`;
}

function accountOf(user: string | undefined, options: CommandOptions): Account {
  const own = options.own ?? ownAccount();
  try {
    return accountFor(user, own);
  } catch (error) {
    if (options.rehearse !== true) throw error;
    options.log("note", `rehearsal only: ${(error as Error).message}`);
    return { name: own.name, home: own.home };
  }
}

/** The working directory. A home directory that does not exist is replaced by "/", as cron does. */
function folderOf(cwd: string | undefined, { home }: Account): string {
  if (cwd === "~") return existsSync(home) ? home : "/";
  return cwd ?? "/";
}

function start(
  file: string,
  args: string[],
  spec: CommandSpec,
  account: Account,
  env: Record<string, string>,
): ChildProcess {
  try {
    return spawn(file, args, {
      cwd: folderOf(spec.cwd, account),
      env,
      shell: false,
      // The command gets a session and process group of its own, so that all processes that it starts can be ended together.
      detached: true,
      stdio: [spec.stdin === undefined ? "ignore" : "pipe", "pipe", "pipe"],
      ...account.switchTo,
    });
  } catch (cause) {
    // spawn throws for errors that Node.js checks itself: a NUL in an argument, an invalid user id, an argument that is too long.
    throw notStarted(file, startProblem(cause as NodeJS.ErrnoException), cause);
  }
}

interface Watch {
  mark: string;
  stdin: string | undefined;
  stdout: LineReader;
  stderr: LineReader;
  graceMs: number;
  signal: AbortSignal;
  clock: Clock;
}

interface Ended {
  exitCode: number | null;
  signal: string | null;
  /** True if the signal aborted before the program ended; the abort then counts as the cause, whatever the exit code is. */
  aborted: boolean;
}

/** Waits for the program's end, and ends its process group when the signal aborts. @throws COMMAND_FAILED if the program did not start */
function watch(
  child: ChildProcess,
  file: string,
  { mark, stdin, stdout, stderr, graceMs, signal, clock }: Watch,
): Promise<Ended> {
  return new Promise((resolve, reject) => {
    let reaped = false;
    let closed = false;
    let ending: Promise<void> | null = null;
    const isTold = () => ending !== null;
    const forget = child.pid === undefined ? () => undefined : endsWithProcess(child.pid, () => reaped, isTold);
    const finish = (exitCode: number | null, by: string | null) => {
      signal.removeEventListener("abort", onAbort);
      stdout.end();
      stderr.end();
      resolve({ exitCode, signal: by, aborted: ending !== null });
    };
    const onAbort = () => {
      const { pid } = child;
      // Without a pid the child did not start; its "error" event follows.
      if (pid === undefined || closed) return;
      ending = endGroup({ pid, mark, reaped: () => reaped }, graceMs, clock).then(() => {
        // The run does not wait for a process that has left the group and keeps the output open.
        child.stdout?.destroy();
        child.stderr?.destroy();
        child.stdin?.destroy();
      });
      ending.catch(reject);
    };
    child.on("error", (cause: NodeJS.ErrnoException) => {
      // The child did start; "exit" and "close" will report its end.
      if (child.pid !== undefined) return;
      signal.removeEventListener("abort", onAbort);
      reject(notStarted(file, startProblem(cause), cause));
    });
    child.on("exit", () => {
      reaped = true;
    });
    child.on("close", (exitCode, by) => {
      closed = true;
      forget();
      if (ending === null) finish(exitCode, by);
      else ending.then(() => finish(exitCode, by), reject);
    });
    child.stdout?.on("data", (chunk: Buffer) => stdout.push(chunk));
    child.stderr?.on("data", (chunk: Buffer) => stderr.push(chunk));
    // Errors such as EPIPE are ignored: a program may close its input before it has read everything, and its exit code shows
    // whether it failed.
    child.stdin?.on("error", () => undefined);
    if (stdin !== undefined) child.stdin?.end(stdin);
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
  });
}

function startProblem(cause: NodeJS.ErrnoException): string {
  switch (cause.code) {
    case "ENOENT":
      return "its folder (cwd) or its interpreter does not exist";
    case "EACCES":
      return "the account may not run it, or may not enter its folder (cwd)";
    case "E2BIG":
      return "its arguments and environment are too long for the system";
    default:
      return cause.message;
  }
}

function notStarted(file: string, why: string, cause: unknown): CarillonError {
  return new CarillonError("COMMAND_FAILED", `${file} could not be started: ${why}`, {
    hint: "Look at the command's path, its cwd and its user on this worker.",
    cause,
  });
}

function endedBy(signal: AbortSignal): CarillonError {
  if (signal.reason instanceof CarillonError) return signal.reason;
  return new CarillonError("CANCELLED", "the command was ended before it had finished", { cause: signal.reason });
}

/** Quotes an argument as in a shell. The result is only shown to people, never executed. */
function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
