import { parseKey } from "../access/worker-key.ts";
import { withoutCredentials } from "../base/credentials.ts";
import { type Duration, parseDuration } from "../base/duration.ts";
import { CarillonError } from "../base/errors.ts";
import { shownValue } from "../base/json.ts";
import { limits } from "../base/limits.ts";
import type { Log } from "../base/log.ts";
import { checkName } from "../task/names.ts";
import { checkListen } from "./listen.ts";
import { checkKinds, type OptionKind } from "./option-kinds.ts";
import { checkCodec, type PayloadCodec } from "./payload-codec.ts";
import { type PayloadOptions, type PayloadSettings, payloadSettings } from "./payload-store.ts";
import { Preset } from "./preset.ts";
import { isThisMachine } from "./this-machine.ts";

export interface RemoteWorkerOptions {
  /** The URL of a server, or of several servers of one cluster. If a server does not respond, the next server is tried. */
  server?: string | readonly string[];
  /**
   * True: also sends the key by http:// to servers on other machines, where everyone on the network path can read it; only for a trusted
   * network. Default false: these URLs must be https://.
   */
  plainHttp?: boolean;
  /** A worker key created by `carillon keys create`; default: the variable CARILLON_WORKER_KEY. */
  key?: string;
  /** The groups whose tasks this worker runs; default: all groups that its key permits. */
  groups?: readonly string[];
  /** This worker's name in the cluster; default: a random name. */
  name?: string;
  /**
   * Labels of this process. A task with the option `labels` runs only on workers that have all of its labels. `carillon nodes` shows them.
   */
  labels?: Record<string, string>;
  /** The maximum number of handlers that run at the same time; default 100. */
  concurrency?: number;
  /** The time before its due time at which a run may be claimed; default 1 s. */
  claimAhead?: Duration;
  /** A worker that sends nothing for this time is presumed dead; default 6 s, at most one minute. */
  sessionTimeout?: Duration;
  /** The time for which a handler may block the event loop before this process is presumed dead; default 1 min. */
  standstill?: Duration;
  /** The time that `stop` waits for running handlers before it aborts them; default 30 s. */
  drain?: Duration;
  /**
   * Whether the worker stops on SIGTERM and SIGINT; default true. After a signal, the process exits once everything has stopped; after a
   * second signal, it exits at once. If the program has its own listener for the signal, the program must exit itself.
   */
  handleSignals?: boolean;
  /** True: `start` rejects if no server responds. Default false: it waits for a server. */
  failFast?: boolean;
  /**
   * Decodes payloads and encodes results, for example by encryption with keys that the servers do not have. See docs/tasks/runs.md.
   * Default: none.
   */
  codec?: PayloadCodec;
  /** Moves large payloads and results to a store of their own; see docs/tasks/runs.md. Default: none. */
  payloads?: PayloadOptions;
  /**
   * The host:port for GET /livez, /readyz and /metrics, which need no sign-in; default: none. Only a loopback address is permitted, unless
   * `behindProxy` is set.
   */
  listen?: string;
  /** True if a proxy in front of `listen` terminates TLS and decides which clients have access; default false. */
  behindProxy?: boolean;
  /** The logger. Default: writes warnings and errors to standard error. */
  log?: Log;
}

export interface RemoteWorkerSettings {
  servers: string[];
  key: string;
  groups: string[] | null;
  name: string | null;
  labels: Record<string, string>;
  concurrency: number;
  claimAheadMs: number;
  sessionTimeoutMs: number;
  standstillMs: number;
  drainMs: number;
  handleSignals: boolean;
  failFast: boolean;
  codec: PayloadCodec | null;
  payloads: PayloadSettings | null;
  listen: string | null;
  behindProxy: boolean;
}

/** Changes to the options of every remote worker that is created: see `Preset`. */
export const workerPreset = new Preset<RemoteWorkerOptions>();

const optionKinds: Record<keyof RemoteWorkerOptions, OptionKind> = {
  server: "text or texts",
  plainHttp: "flag",
  key: "text",
  groups: "texts",
  name: "text",
  labels: "object",
  concurrency: "number",
  claimAhead: "duration",
  sessionTimeout: "duration",
  standstill: "duration",
  drain: "duration",
  handleSignals: "flag",
  failFast: "flag",
  codec: "object",
  payloads: "object",
  listen: "text",
  behindProxy: "flag",
  log: "object",
};

const wrong = (what: string, hint: string) => new CarillonError("OPTION_INVALID", what, { hint });

/**
 * Validates the options and adds defaults.
 * @throws OPTION_INVALID, DURATION_INVALID; TASK_INVALID for an invalid name; KEY_UNKNOWN for a text that is not a worker key
 */
export function workerSettingsOf(options: RemoteWorkerOptions): RemoteWorkerSettings {
  checkKinds(options, optionKinds);
  const servers = [options.server ?? []].flat().flatMap((text) => text.split(",").map((url) => url.trim()));
  if (servers.length === 0) throw wrong("a worker needs a server", 'Give server: "http://host:7373", or several.');
  for (const url of servers) {
    const shown = shownValue(withoutCredentials(url));
    if (!/^https?:\/\//.test(url) || !URL.canParse(url))
      throw wrong(`server cannot be ${shown}`, "Give an http:// or https:// URL.");
    const { protocol, hostname } = new URL(url);
    if (protocol === "http:" && !isThisMachine(hostname) && options.plainHttp !== true)
      throw wrong(
        `server ${shown} would have the worker key sent unencrypted`,
        "Give an https:// URL: a proxy before the server ends TLS. In a network that you trust: plainHttp: true, or CARILLON_PLAIN_HTTP=1 for the command.",
      );
  }
  const { concurrency = 100, key = "" } = options;
  if (!parseKey(key)) {
    throw new CarillonError("KEY_UNKNOWN", key === "" ? "a worker needs a key" : "that is no worker key", {
      hint: "Make one with carillon keys create NAME; give it as CARILLON_WORKER_KEY or the option key.",
    });
  }
  if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > 10_000)
    throw wrong(`concurrency cannot be ${concurrency}`, "Give 1 to 10000.");
  const claimAheadMs = parseDuration(options.claimAhead ?? 1_000, "claimAhead", 0);
  if (claimAheadMs > limits.pollAheadMs)
    throw wrong(`claimAhead cannot be ${claimAheadMs} ms`, `Give at most ${limits.pollAheadMs} ms.`);
  const sessionTimeoutMs = parseDuration(options.sessionTimeout ?? 6_000, "sessionTimeout", 1_500);
  if (sessionTimeoutMs > limits.workerTimeoutMs)
    throw wrong(
      `sessionTimeout cannot be ${sessionTimeoutMs} ms`,
      `Of a worker by HTTP give at most ${limits.workerTimeoutMs} ms.`,
    );
  const { listen = null, behindProxy = false } = options;
  if (listen !== null) checkListen(listen, behindProxy);
  if (options.name !== undefined) checkName("a worker's name", options.name, 100);
  return {
    servers,
    key,
    groups: options.groups ? [...options.groups] : null,
    name: options.name ?? null,
    labels: { ...options.labels },
    concurrency,
    claimAheadMs,
    sessionTimeoutMs,
    standstillMs: parseDuration(options.standstill ?? "1m", "standstill", 0),
    drainMs: parseDuration(options.drain ?? "30s", "drain", 0),
    handleSignals: options.handleSignals ?? true,
    failFast: options.failFast ?? false,
    codec: checkCodec(options.codec),
    payloads: payloadSettings(options.payloads),
    listen,
    behindProxy,
  };
}
