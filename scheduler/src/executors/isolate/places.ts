import { fork } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { pause, systemClock } from "../../base/clock.ts";
import { CarillonError } from "../../base/errors.ts";
import type { FromHost, ToHost } from "./messages.ts";
import type { IsolationPlace } from "./settings.ts";

/** The worker's handle of a thread or a process that runs handlers. */
export interface Place {
  /** @throws DataCloneError for a value that cannot be copied */
  send(message: ToHost): void;
  /** Ends the host at once, whatever it is computing. `gone` is still called. */
  end(): void;
}

/** The way in which a host ended. */
export interface Gone {
  /** True if the host needed more memory than its limit. */
  outOfMemory: boolean;
  /** The end in words, such as "exited with code 7". */
  how: string;
}

export interface PlaceOptions {
  place: IsolationPlace;
  memoryMb: number | null;
  message: (message: FromHost) => void;
  gone: (gone: Gone) => void;
}

/**
 * The file that a handler's thread or process starts with; it is beside this file, compiled in the same way. An application's bundle may
 * contain this code without that file, and without a URL for this one, so the file is looked for only when a handler is isolated.
 * @throws TASK_INVALID
 */
function hostUrl(): URL {
  try {
    const url = new URL("./host.js", import.meta.url);
    if (existsSync(url)) return url;
  } catch {
    // A module in a CommonJS bundle has no URL.
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

/** V8 reports a full heap on standard error, and then aborts. */
const heapFull = /out of memory/i;
const tailLength = 8_192;
const lastWordsMs = 1_000;

function openProcess({ memoryMb, message, gone }: PlaceOptions): Place {
  const limit = memoryMb === null ? [] : [`--max-old-space-size=${memoryMb}`];
  const child = fork(fileURLToPath(hostUrl()), [String(process.pid)], {
    serialization: "advanced",
    // Without --inspect options, because the worker already uses the debugger's port.
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
    // An error of sending to a child that has just ended is ignored here, because `gone` reports that end.
    send: (told) => void (child.connected && child.send(told, () => undefined)),
    end: () => void child.kill("SIGKILL"),
  };
}
