/** The options in a task's code for a handler that runs in a thread or a process of its own. */
import { statSync } from "node:fs";
import { isAbsolute } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { CarillonError, messageOf } from "../../base/errors.ts";
import { shownValue } from "../../base/json.ts";
import { choice, count, duration, object } from "../../task/kinds/kinds.ts";

export type IsolationPlace = "thread" | "process";

/** Isolation of a module's handler. A string is short for `{ in: … }`. */
export type Isolate =
  | IsolationPlace
  | {
      /** A worker thread of this process, or a separate process. Default "thread". */
      in?: IsolationPlace;
      /** Limit of JavaScript's heap per thread or process, in MB; beyond it, the thread or process is ended. Default: Node.js's limit. */
      memoryMb?: number;
      /** The maximum number of threads or processes. Default: the `concurrency` of the worker. */
      pool?: number;
      /**
       * How long a handler may continue after its run's signal has aborted; then its thread or process is ended. At most 10 s. Default
       * "1s".
       */
      killAfter?: number | string;
    };

export interface Isolation {
  place: IsolationPlace;
  memoryMb: number | null;
  /** The maximum number of hosts; null: as many as the worker executes runs at once. */
  most: number | null;
  killAfterMs: number;
}

/** A worker waits 12 s for a handler that ignores its aborted signal; the thread or process must have been ended before. */
const longestKillAfterMs = 10_000;

const isolateKind = object<Isolation>(
  {
    in: {
      kind: choice(["thread", "process"]),
      kept: "place",
      usual: "thread",
      description: "A worker thread of this process, or a process of its own.",
    },
    memoryMb: {
      kind: count(16, 1_048_576),
      usual: null,
      description: "Megabytes of JavaScript objects that one may hold.",
    },
    pool: { kind: count(1, 10_000), kept: "most", usual: null, description: "Threads or processes at most." },
    killAfter: {
      kind: duration({ leastMs: 0 }),
      kept: "killAfterMs",
      usual: 1_000,
      description: "How long a handler that was told to stop may go on.",
    },
  },
  { example: '"thread", "process" or { in: "process", memoryMb: 512 }', alone: "in" },
);

/** Validates the isolation options of a task. @throws TASK_INVALID, DURATION_INVALID */
export function isolationOf(task: string, given: unknown): Isolation {
  const isolation = isolateKind.read(given ?? {}, { task, path: "isolate" });
  if (isolation.killAfterMs <= longestKillAfterMs) return isolation;
  throw new CarillonError("TASK_INVALID", `task ${task}: isolate.killAfter is longer than 10 s`, {
    hint: "What takes longer to clean up belongs into the next attempt, or into a task of its own.",
    path: "isolate.killAfter",
  });
}

/**
 * Returns the URL of a handler's file.
 * @throws TASK_INVALID for no absolute path and no file: URL, or if there is no such file
 */
export function moduleOf(task: string, given: URL | string): string {
  const invalid = (what: string, hint: string) =>
    new CarillonError("TASK_INVALID", `task ${task}: ${what}`, { hint, path: "handler" });
  const asWritten = 'Give new URL("./handler.js", import.meta.url), or an absolute path.';
  const text = String(given);
  const isPath = typeof given === "string" && isAbsolute(given);
  if (!isPath && !text.startsWith("file:"))
    throw invalid(`its handler cannot be at ${shownValue(text)}: that is no absolute path and no file: URL`, asWritten);
  const located = () => {
    try {
      const url = isPath ? pathToFileURL(text) : new URL(text);
      return { url, path: fileURLToPath(url) };
    } catch (cause) {
      throw invalid(`its handler cannot be at ${shownValue(text)}: ${messageOf(cause)}`, asWritten);
    }
  };
  const { url, path } = located();
  if (!statSync(path, { throwIfNoEntry: false })?.isFile())
    throw invalid(`there is no file ${path} for its handler`, `${asWritten} A bundler must be told to keep that file.`);
  return url.href;
}
