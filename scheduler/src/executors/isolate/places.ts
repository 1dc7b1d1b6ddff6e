import { fork } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { pause, systemClock } from "../../base/clock.ts";
import { CarillonError } from "../../base/errors.ts";
import type { FromHost, ToHost } from "./messages.ts";
import type { IsolationPlace } from "./settings.ts";

/** The worker's handle of a host: a thread or process that runs handlers. */
export interface Place {
  /** Sends a message to the host. @throws DataCloneError for a value that cannot be copied */
  send(message: ToHost): void;
  /** Ends the host at once, even if it is computing. `gone` is called afterwards. */
  end(): void;
}

/** Describes how a host ended. */
export interface Gone {
  /** True if the host ended because it exceeded its memory limit. */
  outOfMemory: boolean;
  /** Describes the end, such as "exited with code 7". */
  how: string;
}

export interface PlaceOptions {
  place: IsolationPlace;
  memoryMb: number | null;
  message: (message: FromHost) => void;
  gone: (gone: Gone) => void;
}

/**
 * Returns the URL of `host.js`, the file that a host starts with, which is compiled into the same folder as this file. If an application
 * bundles this code, that file or this module's URL may be missing, so it is looked for only when a handler is isolated.
 * @throws TASK_INVALID if the file is missing
 */
function hostUrl(): URL {
  try {
    const url = new URL("./host.js", import.meta.url);
    if (existsSync(url)) return url;
  } catch {
    // In a CommonJS bundle, `import.meta.url` is undefined.
  }
  throw new CarillonError("TASK_INVALID", "the file that runs isolated handlers is not beside Carillon's code", {
    hint: "Leave the package carillon out of your bundle (esbuild: --packages=external), or do without `isolate`.",
  });
}

export const openPlace = (options: PlaceOptions): Place =>
  options.place === "thread" ? openThread(options) : openProcess(options);

function openThread({ memoryMb, message, gone }: PlaceOptions): Place {
  const thread = new Worker(hostUrl(), {
    name: "carillon handler",
    ...(memoryMb === null ? {} : { resourceLimits: { maxOldGenerationSizeMb: memoryMb } }),
  });
  let failure: (Error & { code?: unknown }) | undefined;
  thread.on("message", message);
  thread.on("error", (error) => {
    failure = error;
  });
  thread.on("exit", (code) =>
    gone({
      outOfMemory: failure?.code === "ERR_WORKER_OUT_OF_MEMORY",
      how: failure ? `ended by ${failure.name}: ${failure.message}` : `exited with code ${code}`,
    }),
  );
  return { send: (told) => thread.postMessage(told), end: () => void thread.terminate() };
}

/** Matches what V8 writes to standard error when the heap is full, before it aborts the process. */
const heapFull = /out of memory/i;
const tailLength = 8_192;
const lastWordsMs = 1_000;

function openProcess({ memoryMb, message, gone }: PlaceOptions): Place {
  const limit = memoryMb === null ? [] : [`--max-old-space-size=${memoryMb}`];
  const child = fork(fileURLToPath(hostUrl()), [String(process.pid)], {
    serialization: "advanced",
    // --inspect options are left out, because the worker already uses the debugger's port.
    execArgv: [...process.execArgv.filter((one) => !one.startsWith("--inspect")), ...limit],
    stdio: ["ignore", "inherit", "pipe", "ipc"],
  });
  let tail = "";
  let ended = false;
  const saidAll = new AbortController();
  child.stderr?.on("data", (data: Buffer) => {
    process.stderr.write(data);
    tail = (tail + data.toString("latin1")).slice(-tailLength);
  });
  child.stderr?.on("close", () => saidAll.abort());
  const end = async (how: string, aborted: boolean) => {
    if (ended) return;
    ended = true;
    if (aborted) await pause(systemClock, lastWordsMs, saidAll.signal);
    gone({ outOfMemory: aborted && heapFull.test(tail), how });
  };
  child.on("message", message);
  child.on("error", (error) => void end(`could not be started: ${error.message}`, false));
  child.on(
    "exit",
    (code, signal) =>
      void end(
        signal === null ? `exited with code ${code}` : `was ended by ${signal}`,
        signal === "SIGABRT" || code === 134,
      ),
  );
  return {
    // A send error of a child that has just ended is ignored, because `gone` reports that end.
    send: (told) => void (child.connected && child.send(told, () => undefined)),
    end: () => void child.kill("SIGKILL"),
  };
}
