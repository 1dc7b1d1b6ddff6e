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
import { checkStoreGiven } from "./store-given.ts";

export interface CommandOptions {
  /** Programs that tasks may run: absolute paths, or names looked up in the system's own folders. */
  allow?: string[];
  /**
   * Variables that tasks may set for these programs, beside LANG, LC_*, TZ, SHELL and PATH: names, or prefixes such as "APP_*". Default:
   * none.
   */
  allowEnv?: string[];
  /** True: an allowed shell may run, and with it any command line. Default false. */
  shell?: boolean;
  /** True: commands are not run; the run's log shows what would be run. Default false. */
  rehearse?: boolean;
}

export interface HttpTaskOptions {
  /**
   * The hosts that HTTP tasks may call: "api.example.com", "*.example.com", "10.1.0.0/16", each with or without ":port". Private and local
   * addresses are allowed only if they are listed as addresses. Default: none.
   */
  allow?: string[];
  /**
   * The secret that signs requests, for all hosts or by host. A receiver that can verify a signature can also forge it. Default: unsigned.
   */
  secret?: string | Record<string, string>;
  /** By namespace: the secret that signs its tasks' requests to every host, instead of `secret`. */
  namespaceSecrets?: Record<string, string>;
  /** Also send `Carillon-Signature`, for receivers that can verify nothing else. It does not cover method, URL and task. Default true. */
  legacySignature?: boolean;
}

export interface CarillonOptions {
  /**
   * A postgres:// URL, or "embedded": a private PostgreSQL in `directory`. Default: the embedded one; but if NODE_ENV is "production",
   * `store` or `directory` must be given. An explicit `undefined` is refused, because it most likely comes from a variable that is not set.
   */
  store?: string;
  /**
   * The postgres:// URL, leading to the server itself, through which the process listens for signals (LISTEN). Needed for a store behind a
   * pooler in transaction mode; without it, signals are polled there, up to 150 ms late. Default: `store`.
   */
  listenUrl?: string;
  /** The most connections to the store, 2 to 200, not counting the one that listens for signals; default 8. */
  connections?: number;
  /**
   * An additional coordination provider: zookeeper://host:2181,host:2181/path or redis://host:6379. Every node of a cluster must use the
   * same one. Default: only the store.
   */
  coordination?: string;
  /**
   * Refuse to start if the store, the coordination service, a webhook or a mail server on another machine would be reached without TLS.
   * Default false: only a warning at the start.
   */
  requireTls?: boolean;
  /** The folder of the embedded store; default ".carillon". */
  directory?: string;
  /**
   * Create the embedded store if it does not exist; default true, but false if NODE_ENV is "production". A store that was lost is never
   * replaced.
   */
  createStore?: boolean;
  /** The PostgreSQL schema that holds everything; default "carillon". */
  schema?: string;
  /** This process's name in the cluster; default: a random name. */
  name?: string;
  /**
   * The address at which other processes reach this one: "host:port", an IPv6 address in brackets. Two live processes with the same address
   * are refused. Default: none.
   */
  address?: string;
  /** Plan slots and run the cluster's services; default true. */
  scheduler?: boolean;
  /** A scheduler that never leads, and only catches up on what the leader missed; default false. */
  observer?: boolean;
  /** Run tasks in this process; default true. */
  worker?: boolean;
  /** The groups whose tasks this process runs; default: those of the tasks defined here. */
  groups?: string[];
  /**
   * Properties of this process, such as { zone: "eu-1" }: a task with `labels` runs only on workers that have all of them. `carillon nodes`
   * shows them.
   */
  labels?: Record<string, string>;
  /** The number of handlers that run at once; default 100. */
  concurrency?: number;
  /** How long ended runs, slots and logs are kept; default 30 days. */
  retention?: Duration;
  /** How far ahead slots are planned; default 15 s, at least two session timeouts. */
  horizon?: Duration;
  /** How long before its due time a run may be claimed; default 1 s. */
  claimAhead?: Duration;
  /** A process that is silent for this long is presumed dead; default 6 s. */
  sessionTimeout?: Duration;
  /** How long a computing handler may block the event loop before this process is presumed dead; default 1 min. */
  standstill?: Duration;
  /** How long `stop` waits for running handlers before it aborts them; `stop` ends at most 500 ms later, whatever hangs. Default 30 s. */
  drain?: Duration;
  /**
   * Stop on SIGTERM and SIGINT; default true. The signal ends the process once everything in it has stopped; a second signal ends it at
   * once. If the program itself listens to the signal, the program must end the process.
   */
  handleSignals?: boolean;
  /**
   * Allow a task to be defined again, which replaces its handler and options. For a development server that reloads modules after an edit:
   * runs that begin from then on use the new handler. Default false: a second definition is refused with TASK_DUPLICATE.
   */
  hotReload?: boolean;
  /**
   * The release of your program: "2026-11-26.3", a build number, a commit. A process that restarts during a roll-out does not restore the
   * definitions of an older release; if releases are whole numbers, the larger one is newer. Default: the version in your package.json.
   */
  release?: string;
  /** How long the newest release's definitions stay after the last of its processes has gone; default 1 min. See docs/releases.md. */
  releaseGrace?: Duration;
  /**
   * What a scheduler does if cluster time is behind its former maximum, for instance after the store's clock was set back. "wait": plan
   * nothing until cluster time has passed that maximum (default). "refuse": do not start. See docs/coordination-faults.md.
   */
  clockBack?: ClockBack;
  /** Migrate an older schema to this version at the start; default true. false: run `carillon migrate` as a separate step. */
  migrate?: boolean;
  /** Reject `start` if the store is unreachable, instead of waiting for it; default false. */
  failFast?: boolean;
  commands?: CommandOptions;
  httpTasks?: HttpTaskOptions;
  /**
   * The keys that seal and open tasks' secrets: base64 of 32 bytes, or "file:PATH" for a file with one key per line. The first key seals;
   * the other keys can still open. Default: the comma-separated keys in CARILLON_SECRET_KEYS. Without keys secrets are not available.
   */
  secretKeys?: string | string[];
  /** The address at which this scheduler serves remote workers, the API and the console: "host:port". Default: none. */
  listen?: string;
  /** True if a proxy in front of this process terminates TLS. Otherwise it listens only at this machine's own addresses. */
  behindProxy?: boolean;
  /**
   * Addresses of proxies whose `X-Forwarded-For` and `X-Forwarded-Host` are trusted: "10.0.3.7", "10.0.3.0/24". Default: this machine's
   * own.
   */
  trustedProxies?: string[];
  /** Count and time the work of this process, for `metrics()`; default: true if `listen` is given. */
  metrics?: boolean;
  /** The receivers of alarms; see docs/alarms.md. Default: only the log. */
  alarms?: AlarmOptions;
  /** The receivers of the events of runs, by name; see docs/webhooks.md. */
  webhooks?: Record<string, EventWebhookOptions>;
  /**
   * The password of the first user, `admin`, or "file:PATH". It is used only while there are no users. Default: a random password, shown on
   * the terminal from which the process was started; without a terminal no user is created. See docs/access.md.
   */
  adminPassword?: string;
  /** The path of a sorted file of SHA-1 hashes of breached passwords, which users cannot choose. See docs/sign-in.md. Default: none. */
  breachedPasswords?: string;
  /** The identity provider that can sign users in, in addition to passwords; see docs/sign-in.md. Default: none. */
  provider?: ProviderOptions;
  /**
   * Which users must have a second factor in addition to the password. Such a user must add a second factor before any other call. Default
   * "nobody": each user may choose. Must be the same on every node that listens.
   */
  requireSecondFactor?: FactorChoice;
  /** How long a sign-in by password or provider lasts in a browser; default 1 day. Must be the same on every node that listens. */
  signInLasts?: Duration;
  /** A sign-in that is unused for this long ends earlier; default 4 h. */
  signInIdle?: Duration;
  /** Encodes payloads and results before they are stored, for example encrypts them; see docs/runs.md. Default: none. */
  codec?: PayloadCodec;
  /** Keeps large payloads and results outside the store; see docs/runs.md. Default: none. */
  payloads?: PayloadOptions;
  /** Default: warnings and errors to standard error. */
  log?: Log;
}

export interface Settings {
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
  /** The path of a file of hashes; null: none. */
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
  /** A sign-in ends after this long without use, in milliseconds. */
  idleMs: number;
  factorOf: FactorChoice;
}

/** The preset for every Carillon. */
export const carillonPreset = new Preset<CarillonOptions>();

/** The value of the option `store` that selects a private, embedded PostgreSQL. */
export const embeddedStore = "embedded";

const shortestTimeoutMs = 1_500;
/** Uses within one minute count as one use, so a shorter limit would end a sign-in that is in use. */
const shortestSignInMs = 120_000;
/** The longest interval of beats, whatever the timeout: a beat also returns changes whose signal was lost. */
export const longestBeatMs = 5_000;
/** Leaves about two seconds from a beat to the end of trust: enough to repeat a failed beat. */
const spareMs = 2_500;

/** The interval of a process's beats: half of its timeout, or longer if enough of the timeout remains. */
export const beatMsOf = (sessionTimeoutMs: number): number =>
  Math.min(Math.max(sessionTimeoutMs / 2, sessionTimeoutMs - spareMs), longestBeatMs);

/** @throws OPTION_INVALID, DURATION_INVALID */
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
    // An election takes up to a beat and a timeout, less than 1.6 timeouts. The leader plans again once a quarter of the horizon is used.
    horizonMs: parseDuration(
      options.horizon ?? Math.max(15_000, 2.5 * sessionTimeoutMs),
      "horizon",
      2 * sessionTimeoutMs,
    ),
    claimAheadMs: parseDuration(options.claimAhead ?? 1_000, "claimAhead", 0),
    sessionTimeoutMs,
    beatMs: beatMsOf(sessionTimeoutMs),
    // A live leader plans within about ten milliseconds of a signal. If several processes plan at once, it does no harm.
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

/** @throws OPTION_INVALID */
function checkedFactor(given: FactorChoice): FactorChoice {
  if (factorChoices.includes(given)) return given;
  throw new CarillonError("OPTION_INVALID", `requireSecondFactor cannot be ${shownValue(given)}`, {
    hint: `Give ${factorChoices.join(", ")}.`,
    path: "requireSecondFactor",
  });
}

/** The release is in each session's row and is shown for each process, so it must be short. @throws OPTION_INVALID */
function checkedRelease(release: string): string {
  if (/^[\x21-\x7e]{1,100}$/.test(release)) return release;
  throw new CarillonError("OPTION_INVALID", `release cannot be ${shownValue(release)}`, {
    hint: 'Give 1 to 100 letters, digits and signs without a space, such as "2026-11-26.3".',
    path: "release",
  });
}

/** @throws OPTION_INVALID */
function wholeNumber(option: "concurrency" | "connections", given: number, least: number, most: number): number {
  if (Number.isInteger(given) && given >= least && given <= most) return given;
  throw new CarillonError("OPTION_INVALID", `${option} cannot be ${given}`, {
    hint: `Give ${least} to ${most}.`,
    path: option,
  });
}

/** @throws OPTION_INVALID */
function checkStoreUrl(option: "store" | "listenUrl", text: string | undefined, otherwise: string): void {
  if (text === undefined || (option === "store" && text === embeddedStore)) return;
  // libpq allows a user without a host, and several hosts; the URL standard allows neither.
  const url = parseStoreUrl(text, option).url.replace("@/", "@localhost/");
  if (/^postgres(ql)?:\/\//.test(url) && URL.canParse(url)) return;
  throw new CarillonError("OPTION_INVALID", `${option} must be a postgres:// URL`, {
    hint: `For example postgres://user:password@host:5432/database; ${otherwise}.`,
    path: option,
  });
}

const mostLabels = 32;
const longestLabel = 200;

/** Labels are in each session's row, so they must be small. */
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
