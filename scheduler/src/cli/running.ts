import { CarillonError, isCarillonError, messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { Carillon } from "../library/carillon.ts";
import { type CarillonOptions, carillonPreset, embeddedStore } from "../settings/settings.ts";
import { readConfig } from "./config/config-file.ts";
import { optionsBeneath } from "./config/config-settings.ts";
import type { LogLevel } from "./config/log-levels.ts";
import { readOptionFile } from "./config/option-file.ts";
import { type ExitCode, exitCodes } from "./exit-codes.ts";
import { whenUnread } from "./readers.ts";
import { type CommonOptions, chosenAddress, chosenCoordination, chosenStore } from "./store-choice.ts";

/** The options of `dev`, `server` and `worker` in addition to the common ones. */
export interface NodeOptions extends CommonOptions {
  coordination?: string;
  failFast?: boolean;
  label?: [string, string][];
  name?: string;
  address?: string;
  listenUrl?: string;
  observer?: boolean;
  group?: string[];
  concurrency?: number;
  allow?: string[];
  allowEnv?: string[];
  shell?: boolean;
  rehearse?: boolean;
  allowHttp?: string[];
  listen?: string;
  behindProxy?: boolean;
  trustedProxy?: string[];
  alarms?: string;
  provider?: string;
  migrate?: boolean;
  logLevel: LogLevel;
}

interface Role {
  scheduler: boolean;
  worker: boolean;
}

/**
 * Returns a function that completes the options of a `Carillon`: it adds the command's role, and flags override the options in the file.
 * @throws STORE_NEEDED if a server or a profile is given
 */
export function deciding(options: NodeOptions, log: Log, role: Role) {
  const { directory, schema, name, group, label, concurrency, failFast, observer, allow, shell, rehearse } = options;
  const { allowEnv = [], allowHttp = [], listen, listenUrl, behindProxy, trustedProxy } = options;
  if (options.server || options.profile)
    throw new CarillonError("STORE_NEEDED", "this process is one of the cluster's own, so it needs the store", {
      hint: "Leave out --server and --profile. Only carillon worker --server URL FILE takes part by a server.",
    });
  const tell = (open: CarillonError) => log.warn({ code: open.code, advice: open.hint }, open.message);
  const read = (given: unknown, name: string) =>
    typeof given === "string" ? readOptionFile(name, given, tell) : given;
  if (options.file?.open) tell(options.file.open);
  const files = { alarms: options.alarms, provider: options.provider };
  const named = Object.entries(files).flatMap(([name, file]) => (file === undefined ? [] : [[name, read(file, name)]]));
  // These options concern only schedulers and are ignored in a worker, because one configuration file may serve all processes of a folder.
  const {
    listen: at,
    behindProxy: behind,
    trustedProxies: proxies,
    observer: observes,
    ...all
  } = optionsBeneath(options.file, process.env, read);
  const schedules = role.scheduler
    ? {
        ...(at === undefined ? {} : { listen: at }),
        ...(behind === undefined ? {} : { behindProxy: behind }),
        ...(proxies === undefined ? {} : { trustedProxies: proxies }),
      }
    : {};
  return (given: CarillonOptions): CarillonOptions => {
    // `dev` (scheduler and worker in one process) uses the embedded store if no store is named, because it serves local development.
    const chosen = chosenStore(options, given) ?? (role.scheduler && role.worker ? embeddedStore : undefined);
    const coordination = chosenCoordination(options, given.coordination);
    const address = chosenAddress(options, given.address);
    const { store: _, ...rest } = given;
    // An explicit `store: undefined` in the file of tasks stays in the options, so that it is refused later, unless a folder is configured.
    const unset = Object.hasOwn(given, "store") && directory === undefined && all.directory === undefined;
    return {
      ...all,
      ...schedules,
      ...rest,
      ...(chosen === undefined && !unset ? {} : { store: chosen }),
      ...(coordination === undefined ? {} : { coordination }),
      ...(directory === undefined ? {} : { directory }),
      // `dev` creates a missing store, because a first start usually uses `dev`.
      ...(role.scheduler && role.worker ? { createStore: true } : {}),
      ...(schema === undefined ? {} : { schema }),
      ...(name === undefined ? {} : { name }),
      ...(address === undefined ? {} : { address }),
      observer: role.scheduler && (observer ?? given.observer ?? observes ?? false),
      ...(group === undefined ? {} : { groups: group }),
      ...(label === undefined ? {} : { labels: { ...all.labels, ...given.labels, ...Object.fromEntries(label) } }),
      ...(failFast === undefined ? {} : { failFast }),
      ...(concurrency === undefined ? {} : { concurrency }),
      ...(listen === undefined ? {} : { listen }),
      ...(listenUrl === undefined ? {} : { listenUrl }),
      ...(behindProxy === undefined ? {} : { behindProxy }),
      ...(trustedProxy === undefined ? {} : { trustedProxies: trustedProxy }),
      ...(options.migrate === false ? { migrate: false } : {}),
      ...Object.fromEntries(named),
      commands: {
        ...all.commands,
        ...given.commands,
        allow: [...(all.commands?.allow ?? []), ...(given.commands?.allow ?? []), ...(allow ?? [])],
        allowEnv: [...(all.commands?.allowEnv ?? []), ...(given.commands?.allowEnv ?? []), ...allowEnv],
        ...(shell ? { shell } : {}),
        ...(rehearse ? { rehearse } : {}),
      },
      httpTasks: {
        ...all.httpTasks,
        ...given.httpTasks,
        allow: [...(all.httpTasks?.allow ?? []), ...(given.httpTasks?.allow ?? []), ...allowHttp],
      },
      ...role,
      handleSignals: false,
      log,
    };
  };
}

/**
 * Returns the `Carillon` objects that the file exports. Without a file, returns one that defines no tasks; as a worker, it runs
 * the stored command and HTTP tasks.
 */
export async function makeTowers(
  file: string | undefined,
  decide: (given: CarillonOptions) => CarillonOptions,
  log: Log,
): Promise<Carillon[]> {
  if (file === undefined) return carillonPreset.during(decide, async () => [new Carillon({})]);
  const towers = await (await import("./files/task-file.ts")).loadFile(file, decide);
  if (towers.every(({ settings, taskCount }) => settings.worker && taskCount === 0)) {
    const hint = 'Define one in it: tower.task("hello", { schedule: every("5s") }, () => console.log("hello")).';
    log.warn({ file, hint }, "the file defines no task, so this process has no handler to run");
  }
  return towers;
}

const hasTerminal = (): boolean => [process.stdin, process.stdout, process.stderr].some(({ isTTY }) => isTTY === true);

/**
 * Handles SIGHUP in a remote worker by logging a warning: its key and servers come from flags and variables, which cannot change while it
 * runs.
 */
export const hangUpIgnored = (log: Log) => () =>
  log.warn(
    { hint: "Restart this process to give it another key, other servers or other settings." },
    "SIGHUP was received: this process goes on, and reads nothing anew",
  );

/**
 * Returns the handler of SIGHUP, which asks a process to reload: the handler reads the configuration files again and
 * applies changed options. A signal during a reload causes another reload afterwards.
 */
export function reading(towers: readonly Carillon[], options: NodeOptions, log: Log, role: Role): () => void {
  const read = async () => {
    try {
      const file = options.file && (await readConfig(options.file.path, process.env));
      const decide = deciding({ ...options, ...(file ? { file } : {}) }, log, role);
      for (const tower of towers) {
        const { changed, restart } = await tower.exchange(decide);
        const exchanged = Object.fromEntries(changed.map(({ option, count }) => [option, count]));
        log.info(
          { node: tower.node, changed: exchanged },
          changed.length > 0 ? "files read anew" : "files read anew: no change",
        );
        if (restart.length > 0)
          log.warn({ node: tower.node, options: restart }, "changed options that hold after a restart only");
      }
    } catch (error) {
      const { code, hint } = isCarillonError(error) ? error : { code: undefined, hint: undefined };
      log.error(
        { code, hint, error: messageOf(error) },
        "files could not be read anew: what was read before still holds",
      );
    }
  };
  let last = Promise.resolve();
  return () => {
    last = last.then(read);
  };
}

interface Running {
  onStarted: () => Promise<void>;
  onStopping: () => void;
  /** Handles SIGHUP in a process without a terminal. If absent, SIGHUP stops the process gracefully. */
  onHangUp?: () => void;
}

/**
 * Starts the nodes, waits for a signal, the loss of the reader or the end of a node, and stops the nodes gracefully: their
 * current runs end first. A second signal exits at once; other workers then retry the interrupted runs as far as each task's
 * policy allows.
 * @throws the error of a failed start, or the error with which a node stopped by itself
 */
export async function runUntilStopped(
  towers: readonly { start(): Promise<unknown>; stop(): Promise<void>; ended?(): Promise<void> }[],
  { onStarted, onStopping, onHangUp }: Running,
): Promise<ExitCode> {
  const stopping = new AbortController();
  let signalled = false;
  const onSignal = () => {
    if (signalled) process.exit(exitCodes.interrupted);
    signalled = true;
    stopping.abort();
  };
  const onSighup = onHangUp && !hasTerminal() ? onHangUp : onSignal;
  const signals = [
    ["SIGINT", onSignal],
    ["SIGTERM", onSignal],
    ["SIGHUP", onSighup],
  ] as const;
  for (const [name, listener] of signals) process.on(name, listener);
  // The loss of the reader stops the nodes but does not count as the first signal, because closing a terminal causes the loss and a
  // signal in either order.
  const restore = whenUnread(() => stopping.abort());
  try {
    const started = Promise.all(towers.map((tower) => tower.start())).then(onStarted);
    const stopped = new Promise<"stopped">((resolve) => {
      if (stopping.signal.aborted) resolve("stopped");
      else stopping.signal.addEventListener("abort", () => resolve("stopped"), { once: true });
    });
    const first = await Promise.race([started, stopped]);
    // The stop was requested while the nodes were still starting: `stop` below ends the start, so its rejection is expected and
    // ignored.
    if (first === "stopped") started.catch((error) => void error);
    else await Promise.race([stopped, ...towers.flatMap((tower) => tower.ended?.() ?? [])]);
    onStopping();
    return first === "stopped" ? exitCodes.interrupted : exitCodes.ok;
  } finally {
    await Promise.all(towers.map((tower) => tower.stop()));
    for (const [name, listener] of signals) process.off(name, listener);
    restore();
  }
}
