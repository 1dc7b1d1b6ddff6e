import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { CarillonError } from "../base/errors.ts";
import { silentLog } from "../base/log.ts";
import { servicePlace } from "../cluster/membership-provider.ts";
import type { EmbeddedStore } from "../embedded/index.ts";
import type { Carillon } from "../library/carillon.ts";
import { type CarillonOptions, embeddedStore } from "../settings/settings.ts";
import type { Store } from "../store/store.ts";
import { decoded, parseStoreUrl } from "../store/store-url.ts";
import type { ConfigFile } from "./config/config-file.ts";
import { inEnvironment, type Setting, settings } from "./config/config-settings.ts";
import { type ExitCode, exitCodes } from "./exit-codes.ts";
import { shownPath } from "./files/shown-path.ts";
import { plain } from "./screen/text.ts";

/** The options that every command has. */
export interface CommonOptions {
  store?: string;
  /** URLs of servers. If given, the command uses their HTTP API instead of the store. */
  server?: string[];
  profile?: string;
  /** The parsed configuration file `carillon.config.…`; undefined if there is none. */
  file?: ConfigFile;
  directory?: string;
  schema?: string;
  json?: boolean;
  color: boolean;
}

/** Returns a setting as an object with one field, from the environment or else from the configuration file; an empty object if unset. */
function settingOf<Key extends "createStore" | "requireTls">(key: Key, file: ConfigFile | undefined) {
  const setting = settings.find((one) => one.key === key) as Setting;
  const asked = (inEnvironment(setting, process.env)?.value ?? file?.values[key]) as boolean | undefined;
  return asked === undefined ? {} : ({ [key]: asked } as Pick<CarillonOptions, Key>);
}

export const defaultDirectory = ".carillon";

/** A text setting of the configuration file, whose type was checked when the file was read; undefined if absent or empty. */
const textIn = (file: ConfigFile | undefined, name: string): string | undefined =>
  (file?.values[name] as string | undefined) || undefined;

/** The URL of the chosen store; undefined if the embedded store is used. */
export function chosenUrl(...given: Parameters<typeof chosenStore>): string | undefined {
  const store = chosenStore(...given);
  return store === embeddedStore ? undefined : store;
}

/**
 * The store that the first matching setting names: a URL or "embedded". Flags take precedence over the file of tasks, then the environment,
 * then the configuration file. Undefined if no store is named, or if a folder is named first.
 * @param own the options in a file of tasks
 */
export function chosenStore(
  { store, directory, file }: CommonOptions,
  own: Pick<CarillonOptions, "store" | "directory"> = {},
): string | undefined {
  const { CARILLON_STORE, DATABASE_URL, CARILLON_DIRECTORY } = process.env;
  if (store) return store;
  // The flag --directory takes precedence, because a URL in the environment could be that of another cluster.
  if (directory !== undefined) return undefined;
  if (own.store || own.directory) return own.store || undefined;
  return CARILLON_STORE || DATABASE_URL || (CARILLON_DIRECTORY ? undefined : textIn(file, "store"));
}

/** The URL of the coordination service: from the flag, the file of tasks, the environment, or the configuration file; undefined if none. */
export function chosenCoordination(
  { coordination, file }: { coordination?: string; file?: ConfigFile },
  fileUrl?: string,
): string | undefined {
  return coordination || fileUrl || process.env.CARILLON_COORDINATION || textIn(file, "coordination");
}

/**
 * The address at which other processes reach this process: from the flag, the file of tasks, the environment, or the configuration file;
 * undefined if none.
 */
export function chosenAddress(
  { address, file }: { address?: string; file?: ConfigFile },
  fileAddress?: string,
): string | undefined {
  return address || fileAddress || process.env.CARILLON_ADDRESS || textIn(file, "address");
}

/** Describes a coordination service by its URL, without control characters, because the URL may come from an untrusted source. */
export const coordinationText = (url: string): string => plain(servicePlace(url));

/** The hosts, ports and database of a store's URL as text, without the user and the password. */
export function urlPlace(url: string): string {
  const { hosts, url: first } = parseStoreUrl(url);
  if (!URL.canParse(first)) return "the store";
  const { hostname: host, port, pathname, searchParams } = new URL(first);
  const plainly = (part: string) => decoded(part) ?? part;
  const database = plainly(pathname.slice(1));
  const one = `${searchParams.get("host") ?? plainly(host || "localhost")}:${port || 5432}`;
  const places = hosts.length > 0 ? hosts.map((place) => `${place.host}:${place.port}`).join(",") : one;
  return plain(`${places}${database && `/${database}`}`);
}

/**
 * Describes the opened store: "embedded PostgreSQL 18 in .carillon" or "PostgreSQL at db.example:5432/app". The folder is the one that was
 * actually opened.
 */
export function placeText(
  url: string | undefined,
  embedded: Pick<EmbeddedStore, "version" | "directory"> | undefined,
): string {
  if (embedded)
    return `embedded PostgreSQL ${embedded.version.split(".")[0]} in ${plain(shownPath(embedded.directory))}`;
  return `PostgreSQL at ${urlPlace(url ?? "")}`;
}

export interface Opened {
  tower: Carillon;
  store: Store;
  nowMs: () => number;
  place: string;
  /** Aborted by the first Ctrl-C; all waits of a command end with this signal. */
  signal: AbortSignal;
}

/**
 * Options for the `Carillon` of a command: it neither plans nor runs tasks, fails fast if the store is unreachable, and logs
 * nothing.
 */
export function lookingOptions(options: CommonOptions): CarillonOptions {
  const directory = options.directory ?? (process.env.CARILLON_DIRECTORY || textIn(options.file, "directory"));
  const schema = options.schema ?? (process.env.CARILLON_SCHEMA || textIn(options.file, "schema"));
  const store = chosenStore(options);
  const listenUrl = process.env.CARILLON_LISTEN_URL || textIn(options.file, "listenUrl");
  return {
    ...(store === undefined ? {} : { store }),
    ...(listenUrl === undefined ? {} : { listenUrl }),
    ...(directory === undefined ? {} : { directory }),
    ...settingOf("createStore", options.file),
    ...settingOf("requireTls", options.file),
    ...(schema === undefined ? {} : { schema }),
    scheduler: false,
    worker: false,
    handleSignals: false,
    failFast: true,
    log: silentLog,
  };
}

/**
 * Opens the store for one command and closes it afterwards. The first Ctrl-C ends waits, a second one ends the process.
 * @param make true: creates a missing store; otherwise a wrong URL or folder would leave an empty store behind
 */
export async function withStore(
  options: CommonOptions,
  work: (opened: Opened) => Promise<ExitCode>,
  { make = false }: { make?: boolean } = {},
): Promise<ExitCode> {
  const looking = make ? lookingOptions(options) : { ...lookingOptions(options), createStore: false };
  // Imported only here, so that `--help` and commands that use a server do not load the database driver.
  const { Carillon } = await import("../library/carillon.ts");
  const tower = new Carillon(looking);
  if (!make) await requireCluster(looking, tower.settings.schema);
  const interrupted = new AbortController();
  const onInterrupt = () => {
    if (interrupted.signal.aborted) process.exit(exitCodes.interrupted);
    interrupted.abort();
  };
  process.on("SIGINT", onInterrupt);
  try {
    const { store, nowMs, embedded, url } = await tower.open();
    const place = placeText(url, embedded);
    const exit = await work({ tower, store, nowMs, place, signal: interrupted.signal });
    return interrupted.signal.aborted ? exitCodes.interrupted : exit;
  } finally {
    await tower.stop();
    process.off("SIGINT", onInterrupt);
  }
}

async function requireCluster(
  { store: url, directory = defaultDirectory }: CarillonOptions,
  schema: string,
): Promise<void> {
  if (url === undefined || url === embeddedStore) {
    if (existsSync(directory)) return;
    throw new CarillonError("STORE_UNREACHABLE", `there is no store here: ${resolve(directory)} does not exist`, {
      hint: "Give --store URL (or CARILLON_STORE, DATABASE_URL) or --directory, start `carillon dev` here first, or sign in at a server: carillon login URL.",
    });
  }
  const { hasCluster } = await import("../store/postgres/runs/inspect.ts");
  if (await hasCluster(url, schema)) return;
  throw new CarillonError("STORE_UNSUPPORTED", `no Carillon has used schema ${schema} of ${urlPlace(url)} yet`, {
    hint: "Check --store and --schema; or start `carillon dev`, `server` or `worker` there first.",
  });
}
