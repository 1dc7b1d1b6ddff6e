import { CarillonError, isCarillonError, messageOf } from "../../base/errors.ts";
import type { CarillonOptions } from "../../settings/settings.ts";

/** The type of a setting's value. A file contains a value of this type; a variable's text is parsed to it. */
type Kind = "text" | "number" | "switch" | "texts" | "pairs" | "options";

export interface Setting {
  /** The key in a file, which is also the name of the option of carillon(); a dot separates an object and its field. */
  key: string;
  kind: Kind;
  /** The flag that overrides the setting; null: there is none. */
  flag: string | null;
  /** The names of the setting's environment variables; the first one that is set is used. */
  variables: readonly string[];
  /** A description of the value that applies if no source sets one. */
  preset: string;
  /** "url": the value is shown without its password. "all": only that it is set is shown. Undefined: the value is shown. */
  secret?: "url" | "all";
}

const snake = (key: string) => key.replace(/[A-Z]/g, "_$&").replace(".", "_").toUpperCase();
const setting = (
  key: string,
  kind: Kind,
  preset: string,
  more: Partial<Pick<Setting, "flag" | "variables" | "secret">> = {},
): Setting => ({
  key,
  kind,
  preset,
  variables: [`CARILLON_${snake(key)}`],
  flag: `--${snake(key).toLowerCase().replaceAll("_", "-")}`,
  ...more,
});

/** All settings of the command line; docs/reference/configuration.md lists them, and a test compares the two. */
export const settings: readonly Setting[] = [
  setting("store", "text", "the embedded one", { variables: ["CARILLON_STORE", "DATABASE_URL"], secret: "url" }),
  setting("listenUrl", "text", "the store's", { secret: "url" }),
  setting("connections", "number", "8", { flag: null }),
  setting("server", "text", "none"),
  setting("profile", "text", "that of the last carillon login"),
  setting("directory", "text", ".carillon"),
  setting("createStore", "switch", "yes, in production no", { flag: null }),
  setting("schema", "text", "carillon"),
  setting("coordination", "text", "the store alone", { secret: "url" }),
  setting("requireTls", "switch", "no", { flag: null }),
  setting("name", "text", "a made one"),
  setting("address", "text", "nowhere"),
  setting("listen", "text", "nowhere"),
  setting("behindProxy", "switch", "no"),
  setting("trustedProxies", "texts", "this machine", { flag: "--trusted-proxy" }),
  setting("basePath", "text", "none", { flag: null }),
  setting("frameAncestors", "texts", "none", { flag: null }),
  setting("observer", "switch", "no"),
  setting("groups", "texts", "those of the tasks defined here", { flag: "--group" }),
  setting("labels", "pairs", "none", { flag: "--label" }),
  setting("concurrency", "number", "100"),
  setting("commands.allow", "texts", "none", { flag: "--allow" }),
  setting("commands.allowEnv", "texts", "none", { flag: "--allow-env" }),
  setting("commands.shell", "switch", "no", { flag: "--shell" }),
  setting("commands.rehearse", "switch", "no", { flag: "--rehearse" }),
  setting("httpTasks.allow", "texts", "nowhere", { flag: "--allow-http" }),
  setting("httpTasks.secret", "text", "unsigned", { flag: null, variables: ["CARILLON_HTTP_SECRET"], secret: "all" }),
  setting("httpTasks.namespaceSecrets", "pairs", "none", {
    flag: null,
    variables: ["CARILLON_HTTP_NAMESPACE_SECRETS"],
    secret: "all",
  }),
  setting("httpTasks.legacySignature", "switch", "yes", { flag: null }),
  setting("secretKeys", "text", "none", { flag: null, secret: "all" }),
  setting("adminPassword", "text", "one of chance", { flag: null, secret: "all" }),
  setting("breachedPasswords", "text", "none", { flag: null }),
  setting("alarms", "options", "nobody is told"),
  setting("webhooks", "options", "none", { flag: null }),
  setting("provider", "options", "none"),
  setting("requireSecondFactor", "text", "nobody", { flag: null }),
  setting("signInLasts", "text", "1d", { flag: null }),
  setting("signInIdle", "text", "4h", { flag: null }),
  setting("retention", "text", "30d", { flag: null }),
  setting("horizon", "text", "15s", { flag: null }),
  setting("claimAhead", "text", "1s", { flag: null }),
  setting("sessionTimeout", "text", "6s", { flag: null }),
  setting("standstill", "text", "1m", { flag: null }),
  setting("drain", "text", "30s", { flag: null }),
  setting("release", "text", "your package's version", { flag: null }),
  setting("releaseGrace", "text", "1m", { flag: null }),
  setting("clockBack", "text", "wait", { flag: null }),
  setting("failFast", "switch", "no"),
  setting("migrate", "switch", "yes", { flag: "--no-migrate" }),
  setting("logLevel", "text", "info"),
];

/** Variables that are not settings: secrets, the path of the configuration file, and variables that a worker sets for a command task. */
export const otherVariables = [
  "CARILLON_TOKEN",
  "CARILLON_WORKER_KEY",
  "CARILLON_PLAIN_HTTP",
  "CARILLON_CONFIG",
  "CARILLON_RUN",
  "CARILLON_TASK",
  "CARILLON_SCHEDULE",
  "CARILLON_SLOT",
  "CARILLON_FENCE",
];

type Environment = Readonly<Record<string, string | undefined>>;
type Values = Readonly<Record<string, unknown>>;

const shown = (value: unknown): string => JSON.stringify(value).slice(0, 100);

/** Returns a setting's value in a file; undefined: the file does not set it. */
export function inFile(values: Values, key: string): unknown {
  const [first = "", second] = key.split(".");
  const value = Object.hasOwn(values, first) ? values[first] : undefined;
  if (second === undefined || typeof value !== "object" || value === null)
    return second === undefined ? value : undefined;
  return (value as Values)[second];
}

/** Returns a setting's value from the environment, and the variable's name. @throws CONFIG_INVALID */
export function inEnvironment(
  setting: Setting,
  environment: Environment,
): { value: unknown; from: string } | undefined {
  for (const name of setting.variables) {
    const text = environment[name];
    if (text === undefined || text === "") continue;
    return { value: readText(setting, name, text), from: name };
  }
  return undefined;
}

function readText(
  { key, kind, secret }: Pick<Setting, "key" | "kind" | "secret">,
  name: string,
  text: string,
): unknown {
  const wrong = (hint: string) =>
    new CarillonError("CONFIG_INVALID", `${name}: ${key} cannot be ${secret ? "so" : shown(text)}`, { hint });
  const words = text.split(",").map((word) => word.trim());
  switch (kind) {
    case "number":
      if (/^\d{1,15}$/.test(text)) return Number(text);
      throw wrong("Give a whole number.");
    case "switch":
      if (/^(?:1|true|yes|on)$/i.test(text)) return true;
      if (/^(?:0|false|no|off)$/i.test(text)) return false;
      throw wrong("Give 1 or 0.");
    case "texts":
      return words.filter((word) => word !== "");
    case "pairs":
      return Object.fromEntries(
        words.map((word) => {
          const [, label, value] = /^([^=]+)=(.*)$/s.exec(word) ?? [];
          if (label === undefined) throw wrong("Give name=text, and several with commas: zone=eu-1,rack=7.");
          return [label, value];
        }),
      );
    default:
      return text;
  }
}

/** True if a variable that belongs to no setting is set to a true value. @throws CONFIG_INVALID */
export const isOn = (name: string, environment: Environment): boolean =>
  readText({ key: "it", kind: "switch" }, name, environment[name] || "0") === true;

/** @throws CONFIG_INVALID if the value does not have the setting's type */
export function checkKind({ key, kind, secret }: Setting, value: unknown, from: string): void {
  const isTexts = (given: unknown) => Array.isArray(given) && given.every((one) => typeof one === "string");
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  const kinds: Record<Kind, [fits: boolean, what: string]> = {
    text: [typeof value === "string" || (typeof value === "number" && preset(key)), "a text"],
    number: [typeof value === "number", "a number"],
    switch: [typeof value === "boolean", "true or false"],
    texts: [isTexts(value), "a list of texts"],
    pairs: [isObject && Object.values(value as object).every((one) => typeof one === "string"), "texts by name"],
    options: [typeof value === "string" || isObject, "the path of a file, or what such a file has in it"],
  };
  const [fits, what] = kinds[kind];
  if (!fits)
    throw new CarillonError("CONFIG_INVALID", `${from}: ${key} cannot be ${secret ? "so" : shown(value)}`, {
      hint: `Give ${what}.`,
    });
}

/** The docs pages of the options `alarms`, `webhooks` and `provider`, each of which may be in a file of its own. */
export const pages: Readonly<Record<string, string>> = {
  alarms: "docs/operate/alarms.md",
  webhooks: "docs/tasks/webhooks.md",
  provider: "docs/access/sign-in.md",
};

/** True for settings that are durations, whose value may also be a number of ms. */
const preset = (key: string) =>
  /^(?:retention|signInLasts|signInIdle|horizon|claimAhead|sessionTimeout|standstill|drain|releaseGrace)$/.test(key);

/**
 * Returns the options of a Carillon instance from environment and file; the options in a node's file of tasks, and its flags, override
 * them.
 * @throws CONFIG_INVALID
 */
export function optionsBeneath(
  file: { path: string; values: Values } | undefined,
  environment: Environment,
  readOptions: (given: unknown, name: string) => unknown,
): CarillonOptions {
  const options: Record<string, Record<string, unknown>> = {};
  for (const one of settings) {
    const { key, kind } = one;
    // Other code reads the settings that select the cluster, and the log level is not an option of a Carillon instance.
    if (/^(?:server|profile|store|coordination|address|logLevel)$/.test(key)) continue;
    const said = inEnvironment(one, environment);
    // Not passed on, because the variable may contain several keys separated by commas; it is parsed when the store is opened.
    if (key === "secretKeys" && said) continue;
    const value = said?.value ?? (file && inFile(file.values, key));
    if (value === undefined) continue;
    if (!said) checkKind(one, value, file?.path ?? "");
    const [first = "", second] = key.split(".");
    if (second === undefined) Object.assign(options, { [first]: kind === "options" ? readOptions(value, key) : value });
    else options[first] = { ...options[first], [second]: value };
  }
  return options as CarillonOptions;
}

export const asConfigError = (error: unknown): CarillonError =>
  isCarillonError(error) ? error : new CarillonError("CONFIG_INVALID", messageOf(error), { cause: error });
