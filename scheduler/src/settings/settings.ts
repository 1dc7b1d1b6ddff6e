import { type FactorChoice, factorChoices } from "../access/second-factor-store.ts";
import { type Duration, parseDuration } from "../base/duration.ts";
import { CarillonError, within } from "../base/errors.ts";
import { shownValue } from "../base/json.ts";
import { limits } from "../base/limits.ts";
import type { Log } from "../base/log.ts";
import { type ClockBack, clockBacks } from "../cluster/clock-votes.ts";
import { parseStoreUrl } from "../store/store-url.ts";
import { isEnvPattern } from "../task/command-rules.ts";
import { checkName } from "../task/names.ts";
import { parseAddress } from "./address.ts";
import { type AlarmOptions, type AlarmSettings, alarmSettings } from "./alarms/alarms.ts";
import { checkEventWebhooks, type EventWebhookOptions } from "./event-webhooks.ts";
import { checkListen, checkProxies, loopback } from "./listen.ts";
import { checkKinds, type OptionKind } from "./option-kinds.ts";
import { checkCodec, type PayloadCodec } from "./payload-codec.ts";
import { type PayloadOptions, type PayloadSettings, payloadSettings } from "./payload-store.ts";
import { Preset } from "./preset.ts";
import { programVersion } from "./program-version.ts";
import { type ProviderOptions, type ProviderSettings, providerSettings } from "./provider.ts";
import { checkTls } from "./require-tls.ts";
import { type ServedOptions, type ServedSettings, servedKinds, servedSettings } from "./served.ts";
import { checkStoreGiven } from "./store-given.ts";

export interface CommandOptions {
  /** Programs that tasks may run: absolute paths, or names that are searched for in the system's directories. */
  allow?: string[];
  /**
   * Environment variables that tasks may set for these programs, in addition to LANG, LC_*, TZ, SHELL and PATH: names, or prefixes such as
   * "APP_*". Default: none.
   */
  allowEnv?: string[];
  /** True: shells in `allow` may be run, and with them any command line. Default false. */
  shell?: boolean;
  /** True: commands are not run; instead, the run's log shows the command. Default false. */
  rehearse?: boolean;
}

export interface HttpTaskOptions {
  /**
   * The hosts that HTTP tasks may call: "api.example.com", "*.example.com" or "10.1.0.0/16", each with or without ":port". Private and
   * local addresses are permitted only if they are listed as addresses. Default: none.
   */
  allow?: string[];
  /**
   * The secret with which requests are signed, for all hosts or by host. A receiver that can verify a signature can also forge one.
   * Default: requests are not signed.
   */
  secret?: string | Record<string, string>;
  /** By namespace, the secret with which the requests of its tasks to any host are signed, instead of `secret`. */
  namespaceSecrets?: Record<string, string>;
  /**
   * True (default): also sends the header `Carillon-Signature`, for receivers that can verify no other signature. It does not cover method,
   * URL and task.
   */
  legacySignature?: boolean;
}

export interface CarillonOptions extends ServedOptions {
  /**
   * A postgres:// URL, or "embedded" for a private PostgreSQL in `directory`. Default: "embedded"; but if NODE_ENV is "production", `store`
   * or `directory` must be given. An explicit `undefined` is refused, because it probably comes from an unset variable.
   */
  store?: string;
  /**
   * A postgres:// URL that leads directly to the database server, through which this process listens for signals (LISTEN). Needed if
   * `store` is behind a pooler in transaction mode; without it, signals are then polled, up to 150 ms late. Default: `store`.
   */
  listenUrl?: string;
  /** The maximum number of connections to the store, from 2 to 200, in addition to the one for signals; default 8. */
  connections?: number;
  /**
   * An additional coordination service: zookeeper://host:2181,host:2181/path or redis://host:6379. Every node of a cluster must use
   * the same service. Default: only the store.
   */
  coordination?: string;
  /**
   * True: refuses to start if the store, the coordination service, a webhook or a mail server on another machine would be reached
   * without TLS. Default false: logs a warning at the start for each of them.
   */
  requireTls?: boolean;
  /** The directory of the embedded store; default ".carillon". */
  directory?: string;
  /**
   * True: creates the embedded store if it does not exist. Default: true, or false if NODE_ENV is "production". A store that existed before
   * and was lost is never created again.
   */
  createStore?: boolean;
  /** The PostgreSQL schema of all tables; default "carillon". */
  schema?: string;
  /** This process's name in the cluster; default: a random name. */
  name?: string;
  /**
   * The address at which other processes reach this process: "host:port", with an IPv6 address in brackets. If a live process
   * already has the same address, this process is refused. Default: none.
   */
  address?: string;
  /** Whether this process plans slots and runs the cluster's services; default true. */
  scheduler?: boolean;
  /** True: this scheduler never leads, but plans slots that the leader has missed. Default false. */
  observer?: boolean;
  /** Whether this process executes runs; default true. */
  worker?: boolean;
  /** The groups whose tasks this process runs; default: "default" and the groups of the tasks defined in this process. */
  groups?: string[];
  /**
   * Labels of this process, such as { zone: "eu-1" }. A task with the option `labels` runs only on workers that have all of its labels.
   * `carillon nodes` shows them.
   */
  labels?: Record<string, string>;
  /** The maximum number of handlers that run at the same time; default 100. */
  concurrency?: number;
  /** How long the history of runs and slots, and logs are stored; default 30 days. */
  retention?: Duration;
  /** How far ahead slots are planned; at least two session timeouts. Default: 15 s, or 2.5 session timeouts if that is longer. */
  horizon?: Duration;
  /** The time before its due time at which a run may be claimed; default 1 s. */
  claimAhead?: Duration;
  /** A process that sends nothing for this time is presumed dead; default 6 s. */
  sessionTimeout?: Duration;
  /** The time for which a handler may block the event loop before this process is presumed dead; default 1 min. */
  standstill?: Duration;
  /**
   * The time that `stop` waits for running handlers before it aborts them. `stop` ends at most 500 ms later, even if a part hangs. Default
   * 30 s.
   */
  drain?: Duration;
  /**
   * Whether this process stops on SIGTERM and SIGINT; default true. After a signal, the process exits once everything has stopped; after a
   * second signal, it exits at once. If the program has its own listener for the signal, the program must exit itself.
   */
  handleSignals?: boolean;
  /**
   * True: a task may be defined again, which replaces its handler and options for runs that start afterwards. For development servers that
   * reload modules after an edit. Default false: a second definition throws TASK_DUPLICATE.
   */
  hotReload?: boolean;
  /**
   * The release of the program: "2026-11-26.3", a build number, a commit. During a roll-out, a process of an older release that restarts
   * does not restore its definitions. If releases are whole numbers, the larger one is newer. Default: the version in the program's
   * package.json.
   */
  release?: string;
  /**
   * How long the definitions of the newest release stay in force after its last process has ended; default 1 min. See
   * docs/operate/releases.md.
   */
  releaseGrace?: Duration;
  /**
   * What a scheduler does if cluster time is behind the latest time recorded, for example after the store's clock was set back. "wait"
   * (default): plans nothing until cluster time has passed the recorded time. "refuse": does not start. See
   * docs/coordination/coordination-faults.md.
   */
  clockBack?: ClockBack;
  /** True (default): migrates an older schema to this version at the start. False: run `carillon migrate` as a separate step. */
  migrate?: boolean;
  /** True: `start` rejects if the store is unreachable. Default false: it waits for the store. */
  failFast?: boolean;
  commands?: CommandOptions;
  httpTasks?: HttpTaskOptions;
  /**
   * The keys that encrypt and decrypt tasks' secrets: base64 of 32 bytes, or "file:PATH" for a file with one key per line. The first key
   * encrypts; all keys can decrypt. Default: the comma-separated keys in CARILLON_SECRET_KEYS. Without keys, secrets are not available.
   */
  secretKeys?: string | string[];
  /** The address "host:port" at which this process serves remote workers, the API and the console. Default: none. */
  listen?: string;
  /** True if a proxy in front of this process terminates TLS. Without it, only a loopback address is permitted for `listen`. */
  behindProxy?: boolean;
  /**
   * Addresses of proxies whose headers `X-Forwarded-For` and `X-Forwarded-Host` are trusted: "10.0.3.7", "10.0.3.0/24". Default: the
   * loopback addresses.
   */
  trustedProxies?: string[];
  /** Whether this process collects counters and timings for `metrics()`; default: true if `listen` is given. */
  metrics?: boolean;
  /** The receivers of alarms; see docs/operate/alarms.md. Default: no receivers; only the alarm rules in the store are evaluated. */
  alarms?: AlarmOptions;
  /** The receivers of the events of runs and of the audit log, by name; see docs/tasks/webhooks.md. */
  webhooks?: Record<string, EventWebhookOptions>;
  /**
   * The password of the first user, `admin`, or "file:PATH". It is used only while there are no users. Default: a random password, which is
   * printed on the terminal that the process was started from; without a terminal, no user is created. See docs/access/access.md.
   */
  adminPassword?: string;
  /**
   * The path of a sorted file of SHA-1 hashes of breached passwords, which users cannot choose; see docs/access/sign-in.md. Default: none.
   */
  breachedPasswords?: string;
  /** An identity provider by which users can sign in, in addition to passwords; see docs/access/sign-in.md. Default: none. */
  provider?: ProviderOptions;
  /**
   * The users who must have a second factor in addition to the password. A user without a second factor must add one before any
   * other request is accepted. Default "nobody": each user may choose. Must be the same on every node with `listen`.
   */
  requireSecondFactor?: FactorChoice;
  /** How long a sign-in by password or provider is valid in a browser; default 1 day. Must be the same on every node with `listen`. */
  signInLasts?: Duration;
  /** A sign-in that is not used for this time ends earlier; default 4 h. */
  signInIdle?: Duration;
  /** Encodes payloads and results before they are stored, for example by encryption; see docs/tasks/runs.md. Default: none. */
  codec?: PayloadCodec;
  /** Moves large payloads and results to a store of their own; see docs/tasks/runs.md. Default: none. */
  payloads?: PayloadOptions;
  /** The logger. Default: writes warnings and errors to standard error. */
  log?: Log;
}

export interface Settings extends ServedSettings {
  schema: string;
  name: string | null;
  address: string | null;
  scheduler: boolean;
  observer: boolean;
  worker: boolean;
  groups: string[] | null;
  labels: Record<string, string>;
  concurrency: number;
  connections: number;
  keepMs: number;
  horizonMs: number;
  claimAheadMs: number;
  sessionTimeoutMs: number;
  beatMs: number;
  rescueGraceMs: number;
  standstillMs: number;
  drainMs: number;
  handleSignals: boolean;
  hotReload: boolean;
  release: string;
  releaseGraceMs: number;
  clockBack: ClockBack;
  migrate: boolean;
  failFast: boolean;
  commands: Required<CommandOptions>;
  httpTasks: HttpTaskOptions;
  listen: string | null;
  behindProxy: boolean;
  adminPassword: string | null;
  /** The path of the file of hashes; null if there is none. */
  breachedPasswords: string | null;
  trustedProxies: readonly string[];
  metrics: boolean;
  alarms: AlarmSettings | null;
  webhooks: Readonly<Record<string, EventWebhookOptions>>;
  provider: ProviderSettings | null;
  signIns: SignInSettings;
  codec: PayloadCodec | null;
  payloads: PayloadSettings | null;
}

export interface SignInSettings {
  lastsMs: number;
  /** A sign-in ends if it is not used for this time, in ms. */
  idleMs: number;
  factorOf: FactorChoice;
}

/** Changes to the options of every Carillon that is created: see `Preset`. */
export const carillonPreset = new Preset<CarillonOptions>();

/** The value of the option `store` that selects a private, embedded PostgreSQL. */
export const embeddedStore = "embedded";

const shortestTimeoutMs = 1_500;
/**
 * The minimum of `signInLasts` and `signInIdle`, in ms. Uses within one minute are recorded as one use, so a shorter limit could
 * end a sign-in that is in use.
 */
const shortestSignInMs = 120_000;
/** The longest heartbeat interval, whatever the timeout, because a heartbeat also returns changes whose signal was lost. */
export const longestBeatMs = 5_000;
/** The time that the heartbeat interval leaves of a session timeout: enough to repeat a failed heartbeat before the session expires. */
const spareMs = 2_500;

/**
 * Returns the interval of a process's heartbeats: half of its timeout or its timeout minus `spareMs`, whichever is longer; at most
 * `longestBeatMs`.
 */
export const beatMsOf = (sessionTimeoutMs: number): number =>
  Math.min(Math.max(sessionTimeoutMs / 2, sessionTimeoutMs - spareMs), longestBeatMs);

/** Validates the options and adds defaults. @throws OPTION_INVALID, DURATION_INVALID, ZONE_UNKNOWN; TASK_INVALID for an invalid name */
export function settingsOf(options: CarillonOptions): Settings {
  checkKinds(options, optionKinds);
  within("commands", () => checkKinds(options.commands ?? {}, commandKinds));
  within("httpTasks", () => checkKinds(options.httpTasks ?? {}, httpTaskKinds));
  checkStoreGiven(options);
  checkStoreUrl("store", options.store, 'or give "embedded"');
  checkStoreUrl("listenUrl", options.listenUrl, "leave it out to listen where the store is");
  if (options.name !== undefined) checkName("a node's name", options.name, limits.nodeNameLength);
  const sessionTimeoutMs = parseDuration(options.sessionTimeout ?? 6_000, "sessionTimeout", shortestTimeoutMs);
  const settings: Settings = {
    schema: options.schema ?? "carillon",
    name: options.name ?? null,
    address: options.address === undefined ? null : parseAddress(options.address),
    scheduler: options.scheduler ?? true,
    observer: options.observer ?? false,
    worker: options.worker ?? true,
    groups: options.groups ?? null,
    labels: checkedLabels(options.labels ?? {}),
    codec: checkCodec(options.codec),
    payloads: payloadSettings(options.payloads),
    concurrency: wholeNumber("concurrency", options.concurrency ?? 100, 1, 10_000),
    connections: wholeNumber("connections", options.connections ?? 8, 2, 200),
    keepMs: parseDuration(options.retention ?? "30d", "retention", 3_600_000),
    // An election takes at most a session timeout and a heartbeat interval, together at most five thirds of the timeout. Three
    // quarters of the default horizon last longer than that; the leader plans again once a quarter is used.
    horizonMs: parseDuration(
      options.horizon ?? Math.max(15_000, 2.5 * sessionTimeoutMs),
      "horizon",
      2 * sessionTimeoutMs,
    ),
    claimAheadMs: parseDuration(options.claimAhead ?? 1_000, "claimAhead", 0),
    sessionTimeoutMs,
    beatMs: beatMsOf(sessionTimeoutMs),
    // A live leader plans within about 10 ms after a signal. If several processes plan at once, no harm is done.
    rescueGraceMs: 50,
    standstillMs: parseDuration(options.standstill ?? "1m", "standstill", 0),
    drainMs: parseDuration(options.drain ?? "30s", "drain", 0),
    handleSignals: options.handleSignals ?? true,
    hotReload: options.hotReload ?? false,
    release: checkedRelease(options.release ?? programVersion()),
    releaseGraceMs: parseDuration(options.releaseGrace ?? "1m", "releaseGrace", 1_000),
    clockBack: options.clockBack ?? "wait",
    migrate: options.migrate ?? true,
    failFast: options.failFast ?? false,
    commands: { allow: [], allowEnv: [], shell: false, rehearse: false, ...options.commands },
    httpTasks: { ...options.httpTasks },
    listen: options.listen ?? null,
    behindProxy: options.behindProxy ?? false,
    adminPassword: options.adminPassword ?? null,
    breachedPasswords: options.breachedPasswords ?? null,
    trustedProxies: options.trustedProxies ?? loopback,
    ...servedSettings(options),
    metrics: options.metrics ?? options.listen !== undefined,
    alarms: options.alarms === undefined ? null : alarmSettings(options.alarms),
    webhooks: checkEventWebhooks(options.webhooks ?? {}),
    provider: options.provider === undefined ? null : providerSettings(options.provider),
    signIns: {
      lastsMs: parseDuration(options.signInLasts ?? "1d", "signInLasts", shortestSignInMs),
      idleMs: parseDuration(options.signInIdle ?? "4h", "signInIdle", shortestSignInMs),
      factorOf: checkedFactor(options.requireSecondFactor ?? "nobody"),
    },
  };
  if (!clockBacks.includes(settings.clockBack)) {
    throw new CarillonError("OPTION_INVALID", `clockBack cannot be ${shownValue(settings.clockBack)}`, {
      hint: `Give one of ${clockBacks.join(", ")}.`,
      path: "clockBack",
    });
  }
  const wrongEnv = settings.commands.allowEnv.find((one) => !isEnvPattern(one));
  if (wrongEnv !== undefined) {
    throw new CarillonError("OPTION_INVALID", `commands.allowEnv cannot have ${shownValue(wrongEnv)}`, {
      hint: 'Give names of variables, such as "TARGET", or what names begin with, such as "APP_*".',
      path: "commands.allowEnv",
    });
  }
  if (options.requireTls === true) checkTls(options, settings.alarms, process.env);
  checkProxies(options.trustedProxies, settings.behindProxy);
  if (settings.listen !== null) checkListen(settings.listen, settings.behindProxy);
  if (!/^[A-Za-z_][A-Za-z0-9_]{0,47}$/.test(settings.schema)) {
    throw new CarillonError("OPTION_INVALID", `schema cannot be ${shownValue(settings.schema)}`, {
      hint: "Use letters, digits and _, at most 48, not a digit first.",
    });
  }
  if (settings.observer && !settings.scheduler) {
    throw new CarillonError("OPTION_INVALID", "observer without scheduler: what does not schedule cannot lead anyway", {
      hint: "Leave one of the two out.",
    });
  }
  return settings;
}

/** Validates the option `requireSecondFactor`. @throws OPTION_INVALID */
function checkedFactor(given: FactorChoice): FactorChoice {
  if (factorChoices.includes(given)) return given;
  throw new CarillonError("OPTION_INVALID", `requireSecondFactor cannot be ${shownValue(given)}`, {
    hint: `Give ${factorChoices.join(", ")}.`,
    path: "requireSecondFactor",
  });
}

/**
 * Validates the option `release`. It must be short, because it is in each session's row and is displayed for each process.
 * @throws OPTION_INVALID
 */
function checkedRelease(release: string): string {
  if (/^[\x21-\x7e]{1,100}$/.test(release)) return release;
  throw new CarillonError("OPTION_INVALID", `release cannot be ${shownValue(release)}`, {
    hint: 'Give 1 to 100 letters, digits and signs without a space, such as "2026-11-26.3".',
    path: "release",
  });
}

/** @throws OPTION_INVALID if the value is not a whole number from `least` to `most` */
function wholeNumber(option: "concurrency" | "connections", given: number, least: number, most: number): number {
  if (Number.isInteger(given) && given >= least && given <= most) return given;
  throw new CarillonError("OPTION_INVALID", `${option} cannot be ${given}`, {
    hint: `Give ${least} to ${most}.`,
    path: option,
  });
}

/** @throws OPTION_INVALID if the option is not a postgres:// URL */
function checkStoreUrl(option: "store" | "listenUrl", text: string | undefined, otherwise: string): void {
  if (text === undefined || (option === "store" && text === embeddedStore)) return;
  // libpq permits a user without a host, and several hosts. The URL standard permits neither, so the text is changed before the check.
  const url = parseStoreUrl(text, option).url.replace("@/", "@localhost/");
  if (/^postgres(ql)?:\/\//.test(url) && URL.canParse(url)) return;
  throw new CarillonError("OPTION_INVALID", `${option} must be a postgres:// URL`, {
    hint: `For example postgres://user:password@host:5432/database; ${otherwise}.`,
    path: option,
  });
}

const mostLabels = 32;
const longestLabel = 200;

/** Validates the option `labels`. Labels must be small, because they are in each session's row. */
function checkedLabels(labels: Record<string, string>): Record<string, string> {
  const wrong = (what: string) =>
    new CarillonError("OPTION_INVALID", `labels cannot be so: ${what}`, {
      hint: `Give at most ${mostLabels} texts of at most ${longestLabel} characters by name, such as { zone: "eu-1" }.`,
    });
  if (typeof labels !== "object" || labels === null || Array.isArray(labels)) throw wrong("they are no object");
  const entries = Object.entries(labels);
  if (entries.length > mostLabels) throw wrong(`there are ${entries.length}`);
  for (const [name, value] of entries) {
    if (!/^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$/.test(name)) throw wrong(`a name is ${JSON.stringify(name)}`);
    if (typeof value !== "string" || value.length > longestLabel || value.includes("\0"))
      throw wrong(`${name} is no text, or too long`);
  }
  return { ...labels };
}

const commandKinds: Record<keyof CommandOptions, OptionKind> = {
  allow: "texts",
  allowEnv: "texts",
  shell: "flag",
  rehearse: "flag",
};

const httpTaskKinds: Record<keyof HttpTaskOptions, OptionKind> = {
  allow: "texts",
  secret: "text or texts by name",
  namespaceSecrets: "texts by name",
  legacySignature: "flag",
};

const optionKinds: Record<keyof CarillonOptions, OptionKind> = {
  store: "text",
  listenUrl: "text",
  connections: "number",
  coordination: "text",
  requireTls: "flag",
  directory: "text",
  createStore: "flag",
  schema: "text",
  name: "text",
  address: "text",
  scheduler: "flag",
  observer: "flag",
  worker: "flag",
  groups: "texts",
  labels: "object",
  concurrency: "number",
  retention: "duration",
  horizon: "duration",
  claimAhead: "duration",
  sessionTimeout: "duration",
  standstill: "duration",
  drain: "duration",
  handleSignals: "flag",
  hotReload: "flag",
  release: "text",
  releaseGrace: "duration",
  clockBack: "text",
  migrate: "flag",
  failFast: "flag",
  commands: "object",
  httpTasks: "object",
  secretKeys: "text or texts",
  listen: "text",
  behindProxy: "flag",
  trustedProxies: "texts",
  ...servedKinds,
  metrics: "flag",
  alarms: "object",
  webhooks: "object",
  provider: "object",
  adminPassword: "text",
  breachedPasswords: "text",
  requireSecondFactor: "text",
  signInLasts: "duration",
  signInIdle: "duration",
  codec: "object",
  payloads: "object",
  log: "object",
};
