import { CarillonError } from "../errors.ts";
import { version } from "../version.ts";
import type { ExitCode } from "./exit-codes.ts";
import { tell } from "./node-commands.ts";
import { jsonLog, lineLog } from "./node-log.ts";
import { type NodeOptions, runUntilStopped } from "./running.ts";
import type { Terminal } from "./terminal.ts";

/** A worker that has no store, only servers: `carillon worker --server URL FILE`. */
export async function serveRemote(
  file: string | undefined,
  options: NodeOptions & { server?: string[]; key?: string },
  terminal: Terminal,
): Promise<ExitCode> {
  const { server = [], key, name, group, label, concurrency, failFast } = options;
  if (file === undefined) {
    throw new CarillonError("USAGE", "worker --server needs a file with handlers", {
      hint: 'It exports what worker() of "carillon/worker" gives.',
    });
  }
  const forPeople = !terminal.json && process.stdout.isTTY;
  const log = forPeople
    ? lineLog(options.logLevel, terminal.style, (line) => terminal.line(line))
    : jsonLog(options.logLevel);
  const { loadWorkers } = await import("./task-file.ts");
  const workers = await loadWorkers(file, (given) => ({
    ...given,
    server,
    ...(key === undefined ? {} : { key }),
    ...(name === undefined ? {} : { name }),
    ...(group === undefined ? {} : { groups: group }),
    ...(label === undefined ? {} : { labels: { ...given.labels, ...Object.fromEntries(label) } }),
    ...(concurrency === undefined ? {} : { concurrency }),
    ...(failFast === undefined ? {} : { failFast }),
    handleSignals: false,
    log,
  }));
  for (const one of workers) one.onRun((notice) => tell(log, notice));
  const exit = await runUntilStopped(workers, {
    async onStarted() {
      for (const one of workers)
        log.info({ version, node: one.node, servers: one.settings.servers }, "worker is ready");
    },
    onStopping: () => log.info({}, "stopping: waiting for what runs"),
  });
  log.info({}, "stopped");
  return exit;
}
