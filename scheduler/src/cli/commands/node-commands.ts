import type { Log } from "../../base/log.ts";
import { version } from "../../base/version.ts";
import type { RunNotice } from "../../run/handler.ts";
import { jsonLog, lineLog } from "../config/node-log.ts";
import type { ExitCode } from "../exit-codes.ts";
import { deciding, makeTowers, type NodeOptions, reading, runUntilStopped } from "../running.ts";
import { noticeWords } from "../runs/event-lines.ts";
import type { Terminal } from "../screen/terminal.ts";
import { coordinationText, placeText } from "../store-choice.ts";

/**
 * Runs a scheduler node without handlers ("server"), or a worker that does not plan. Both are for production, so they write a log instead
 * of a live view.
 */
export async function serve(
  role: "server" | "worker",
  file: string | undefined,
  options: NodeOptions,
  terminal: Terminal,
): Promise<ExitCode> {
  const forPeople = !terminal.json && process.stdout.isTTY;
  const log = forPeople
    ? lineLog(options.logLevel, terminal.style, (line) => terminal.line(line))
    : jsonLog(options.logLevel);
  const roles = { scheduler: role === "server", worker: role === "worker" };
  const towers = await makeTowers(file, deciding(options, log, roles), log);
  for (const tower of towers) tower.onRun((notice) => tell(log, notice));
  const exit = await runUntilStopped(towers, {
    async onStarted() {
      for (const tower of towers) {
        const { url, embedded, coordination } = await tower.open();
        const where = {
          store: placeText(url, embedded),
          ...(coordination === undefined ? {} : { coordination: coordinationText(coordination) }),
        };
        const workersAt = tower.listening === null ? {} : { listening: tower.listening };
        log.info({ version, node: tower.node, ...where, ...workersAt }, `${role} is ready`);
      }
    },
    onStopping: () => log.info({}, "stopping: waiting for what runs"),
    onHangUp: reading(towers, options, log, roles),
  });
  log.info({}, "stopped");
  return exit;
}

/**
 * Logs a run's event. At the level info only runs with a problem are logged, because a busy worker ends thousands of runs a
 * second.
 */
export function tell(log: Log, { kind, runId, task, attempt, outcome, error, startedMs, endedMs }: RunNotice): void {
  const fields = { run: runId, task, attempt };
  const tookMs = endedMs === null ? undefined : Math.round(endedMs - startedMs);
  const wrong = { ...fields, tookMs, error: noticeWords(error) };
  if (kind === "started") log.debug(fields, "run started");
  else if (kind === "retry") log.warn(wrong, "attempt failed; it will be tried again");
  else if (outcome === "failed") log.error(wrong, "run failed");
  else log.debug({ ...fields, tookMs }, `run ${outcome ?? kind}`);
}
