import { CarillonError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { version } from "../base/version.ts";
import type { RemoteWorkerOptions } from "../settings/remote-worker.ts";
import { tell } from "./commands/node-commands.ts";
import { isOn, optionsBeneath } from "./config/config-settings.ts";
import { jsonLog, lineLog } from "./config/node-log.ts";
import type { ExitCode } from "./exit-codes.ts";
import { hangUpIgnored, type NodeOptions, runUntilStopped } from "./running.ts";
import type { Terminal } from "./screen/terminal.ts";

export type RemoteOptions = NodeOptions & { key?: string };

/** Flags of processes that use the store directly; a remote worker refuses them. */
const ownOnly: readonly [flag: string, given: (options: RemoteOptions) => boolean][] = [
  ["--store", ({ store }) => store !== undefined],
  ["--directory", ({ directory }) => directory !== undefined],
  ["--schema", ({ schema }) => schema !== undefined],
  ["--profile", ({ profile }) => profile !== undefined],
  ["--listen-url", ({ listenUrl }) => listenUrl !== undefined],
  ["--coordination", ({ coordination }) => coordination !== undefined],
  ["--address", ({ address }) => address !== undefined],
  ["--no-migrate", ({ migrate }) => migrate === false],
  ["--alarms", ({ alarms }) => alarms !== undefined],
  ["--trusted-proxy", ({ trustedProxy }) => trustedProxy !== undefined],
  ["--allow", ({ allow }) => allow !== undefined],
  ["--allow-env", ({ allowEnv }) => allowEnv !== undefined],
  ["--shell", ({ shell }) => shell !== undefined],
  ["--rehearse", ({ rehearse }) => rehearse !== undefined],
  ["--allow-http", ({ allowHttp }) => allowHttp !== undefined],
];

/**
 * Returns a function that completes a remote worker's options: flags override the options in code, and both override the settings of the
 * environment and the configuration file. @throws USAGE, CONFIG_INVALID
 */
export function decidingRemote(options: RemoteOptions, log: Log): (given: RemoteWorkerOptions) => RemoteWorkerOptions {
  const { server = [], key, name, group, label, concurrency, failFast, listen, behindProxy } = options;
  const useless = ownOnly.filter(([, given]) => given(options)).map(([flag]) => flag);
  if (useless.length > 0)
    throw new CarillonError("USAGE", `${useless.join(", ")} cannot go with worker --server`, {
      hint: "Leave it out: this worker has no store, and runs the handlers of its file alone. Or leave out --server.",
    });
  // One configuration file may serve all processes of a folder, so settings that do not concern a remote worker are ignored here.
  const all = optionsBeneath(options.file, process.env, (given) => given);
  const beneath: RemoteWorkerOptions = Object.fromEntries(
    shared.filter((one) => all[one] !== undefined).map((one) => [one, all[one]]),
  );
  return (given) => ({
    ...beneath,
    ...given,
    labels: { ...beneath.labels, ...given.labels, ...Object.fromEntries(label ?? []) },
    server,
    ...(isOn("CARILLON_PLAIN_HTTP", process.env) ? { plainHttp: true } : {}),
    ...(key === undefined ? {} : { key }),
    ...(name === undefined ? {} : { name }),
    ...(group === undefined ? {} : { groups: group }),
    ...(concurrency === undefined ? {} : { concurrency }),
    ...(failFast === undefined ? {} : { failFast }),
    ...(listen === undefined ? {} : { listen }),
    ...(behindProxy === undefined ? {} : { behindProxy }),
    handleSignals: false,
    log,
  });
}

/** The settings that a remote worker reads from the environment and the configuration file. */
const shared = [
  "name",
  "groups",
  "labels",
  "concurrency",
  "claimAhead",
  "sessionTimeout",
  "standstill",
  "drain",
  "failFast",
] as const;

/** Runs a worker that has no store and communicates only with servers: `carillon worker --server URL FILE`. */
export async function serveRemote(
  file: string | undefined,
  options: RemoteOptions,
  terminal: Terminal,
): Promise<ExitCode> {
  if (file === undefined) {
    throw new CarillonError("USAGE", "worker --server needs a file with handlers", {
      hint: 'It exports what worker() of "carillon/worker" gives.',
    });
  }
  const forPeople = !terminal.json && process.stdout.isTTY;
  const log = forPeople
    ? lineLog(options.logLevel, terminal.style, (line) => terminal.line(line))
    : jsonLog(options.logLevel);
  const decide = decidingRemote(options, log);
  const { loadWorkers } = await import("./files/task-file.ts");
  const workers = await loadWorkers(file, decide);
  for (const one of workers) one.onRun((notice) => tell(log, notice));
  const exit = await runUntilStopped(workers, {
    async onStarted() {
      for (const one of workers) {
        const probesAt = one.listening === null ? {} : { listening: one.listening };
        log.info({ version, node: one.node, servers: one.settings.servers, ...probesAt }, "worker is ready");
      }
    },
    onStopping: () => log.info({}, "stopping: waiting for what runs"),
    onHangUp: hangUpIgnored(log),
  });
  log.info({}, "stopped");
  return exit;
}
