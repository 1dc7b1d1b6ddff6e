import { checkPassword } from "../../access/password.ts";
import { readSecretKeys } from "../../access/secrets/read-keys.ts";
import { systemClock } from "../../base/clock.ts";
import { withoutCredentials } from "../../base/credentials.ts";
import { CarillonError } from "../../base/errors.ts";
import { nearest } from "../../base/nearest.ts";
import { servicePlace } from "../../cluster/membership-provider.ts";
import { checkCoordination } from "../../coordination/open.ts";
import { checkEventAddresses } from "../../executors/http/event-poster.ts";
import { httpCaller } from "../../executors/http/handler.ts";
import { checkWebhooks } from "../../executors/http/notice.ts";
import { BreachedPasswords } from "../../http/sign-in/breached-passwords.ts";
import { firstUser, passwordIn } from "../../http/sign-in/first-user.ts";
import { type CarillonOptions, embeddedStore, settingsOf } from "../../settings/settings.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { chosenReach } from "../reach.ts";
import type { Terminal } from "../screen/terminal.ts";
import { plain } from "../screen/text.ts";
import { type CommonOptions, urlPlace } from "../store-choice.ts";
import { type ConfigFile, problemsIn, readRaw } from "./config-file.ts";
import {
  asConfigError,
  checkKind,
  inEnvironment,
  inFile,
  otherVariables,
  pages,
  type Setting,
  settings,
} from "./config-settings.ts";
import { logLevels } from "./log-levels.ts";
import { readOptionFile } from "./option-file.ts";
import { profileCalled, readProfiles, serverUrl } from "./profiles.ts";

interface Told {
  setting: string;
  /** The value, redacted if it is secret; null: no source sets the setting, so the value described in `preset` applies. */
  value: unknown;
  preset: string;
  from: string | null;
}

/** Shows each setting with its source, and all problems. Connects to no store and no server. */
export async function checkConfig(options: CommonOptions & { config?: string }, terminal: Terminal): Promise<ExitCode> {
  const problems: CarillonError[] = [];
  const attempt = <T>(work: () => T): T | undefined => {
    try {
      return work();
    } catch (error) {
      problems.push(asConfigError(error));
      return undefined;
    }
  };
  const file = await readRaw(options.config || process.env.CARILLON_CONFIG).catch((error) => {
    problems.push(asConfigError(error));
    return undefined;
  });
  if (file) problems.push(...problemsIn(file), ...(file.open ? [file.open] : []));
  const told = settings.map((setting): Told & { raw: unknown } => {
    const { value, from } = attempt(() => said(setting, options, file)) ?? { value: undefined, from: null };
    const shown = value === undefined ? null : redacted(setting, value);
    return { setting: setting.key, value: shown, preset: setting.preset, from, raw: value };
  });
  for (const wrong of await wrongValues(told)) problems.push(wrong);
  problems.push(...strangeVariables());
  const given = file ? { ...options, file } : options;
  const reach = attempt(() => chosenReach(given));
  const goes = reach && { to: reach.kind === "server" ? reach.url : "a store", from: reach.from };
  if (terminal.json)
    terminal.object({
      ok: problems.length === 0,
      file: file?.path ?? null,
      goes: goes ?? null,
      settings: told.map(({ setting, value, preset, from }) => ({ setting, value, preset, from })),
      problems: problems.map(({ code, message, hint }) => ({ code, message, hint })),
    });
  else print(told, problems, file, goes, terminal);
  return problems.length === 0 ? exitCodes.ok : exitCodes.problems;
}

/** Returns the value from the source with the highest precedence: flag, variable, file. Only the flags of this command are considered. */
function said(setting: Setting, options: CommonOptions, file: ConfigFile | undefined) {
  const { key, flag } = setting;
  const flags = {
    store: options.store,
    server: options.server?.[0],
    profile: options.profile,
    directory: options.directory,
    schema: options.schema,
  };
  const byFlag = (flags as Record<string, string | undefined>)[key];
  if (byFlag !== undefined) return { value: byFlag as unknown, from: flag };
  const byVariable = inEnvironment(setting, process.env);
  if (byVariable) return byVariable;
  const value = file && inFile(file.values, key);
  return { value, from: value === undefined || !file ? null : file.path };
}

function redacted({ key, secret }: Setting, value: unknown): unknown {
  if (secret === "all") return "(set, and not shown)";
  // A URL that no process takes is not shown, because a part of a password may stand outside user:password@.
  if (secret === "url" && !fits(key, value)) return "(set, and not shown)";
  if (key === "server") return withoutCredentials(String(value));
  if (secret === "url")
    return /^(?:store|listenUrl)$/.test(key) ? urlPlace(String(value)) : servicePlace(String(value));
  // The value may contain a password, or a URL with a secret in it.
  if (key in pages && typeof value === "object") return "(set, and not shown)";
  return value;
}

const optionOf = (name: string, given: unknown, tell: (open: CarillonError) => void): CarillonOptions => ({
  [name]: typeof given === "string" ? readOptionFile(name, given, tell) : given,
});

/** Checks settings with a placeholder for the store, so that a missing store is not reported as an error of another setting. */
const settingsAlone = (options: CarillonOptions) => settingsOf({ store: embeddedStore, ...options });

/** Checks the password that the first start will give to the user `admin`. */
function checkAdminPassword(given: string): void {
  checkPassword(firstUser, passwordIn(given));
}

/** Settings whose check needs another setting: the key is checked together with the value. */
const besides: Readonly<Record<string, string>> = { listen: "behindProxy", horizon: "sessionTimeout" };

/** Returns errors for invalid values, found by the same checks that a process makes when it starts. */
async function wrongValues(
  told: readonly { setting: string; raw: unknown; from: string | null }[],
): Promise<CarillonError[]> {
  const open: CarillonError[] = [];
  const tell = (one: CarillonError) => void open.push(one);
  const rawOf = (name: string) => told.find(({ setting }) => setting === name)?.raw;
  const checks: Readonly<Record<string, (value: never, from: string | null) => unknown>> = {
    coordination: (url: string) => checkCoordination(url),
    server: (url: string) => serverUrl(url, "server", process.env),
    profile: (name: string) => profileCalled(readProfiles(process.env), name),
    alarms: (given: unknown) => {
      const { alarms } = settingsAlone(optionOf("alarms", given, tell));
      checkWebhooks(alarms?.channels ?? {}, alarms?.ping);
    },
    webhooks: (given: unknown) => checkEventAddresses(settingsAlone(optionOf("webhooks", given, tell)).webhooks),
    provider: (given: unknown) => settingsAlone(optionOf("provider", given, tell)),
    // The text of a variable may contain several keys separated by commas. `readSecretKeys` splits them only if it reads the variable
    // itself, so the text is not passed to it.
    secretKeys: (given: string, from) => readSecretKeys(from?.startsWith("CARILLON_") ? undefined : given),
    adminPassword: checkAdminPassword,
    breachedPasswords: (path: string) => new BreachedPasswords(path).check(),
    "httpTasks.allow": (allow: string[]) => httpCaller({ allow, clock: systemClock }),
    "httpTasks.secret": (secret: string) => httpCaller({ secret, clock: systemClock }),
    "httpTasks.namespaceSecrets": (namespaceSecrets: Record<string, string>) =>
      httpCaller({ namespaceSecrets, clock: systemClock }),
    logLevel: (level: string) => {
      if ((logLevels as readonly string[]).includes(level)) return;
      throw new CarillonError("OPTION_INVALID", `logLevel cannot be ${JSON.stringify(level)}`, {
        hint: `Give ${logLevels.join(", ")}.`,
      });
    },
  };
  const asOptions = (setting: string, value: unknown): CarillonOptions => {
    const [first = "", second] = setting.split(".");
    const other = besides[setting];
    const beside = other === undefined || !fits(other, rawOf(other)) ? {} : { [other]: rawOf(other) };
    return { ...beside, [first]: second === undefined ? value : { [second]: value } };
  };
  const wrong: CarillonError[] = [];
  for (const { setting, raw, from } of told) {
    if (raw === undefined || setting === "directory" || !isOfKind(setting, raw)) continue;
    try {
      const check = checks[setting] ?? ((value: never) => settingsAlone(asOptions(setting, value)));
      await check(raw as never, from);
    } catch (error) {
      const { code, message, hint } = asConfigError(error);
      wrong.push(new CarillonError(code, `${from}: ${message}`, { hint }));
    }
  }
  return [...wrong, ...open];
}

/** True if the setting's value is valid. An invalid value is reported elsewhere. */
const fits = (name: string, value: unknown): boolean => {
  try {
    settingsAlone({ [name]: value });
    return isOfKind(name, value);
  } catch {
    return false;
  }
};

/** True if the value has the setting's type. A wrong type has already been reported with the file's problems. */
function isOfKind(name: string, value: unknown): boolean {
  try {
    checkKind(settings.find(({ key }) => key === name) as Setting, value, "");
    return true;
  } catch {
    // The value has a wrong type, which `problemsIn` reports.
    return false;
  }
}

/** Returns an error for each unknown variable that starts with CARILLON_, because it is probably misspelt. */
function strangeVariables(): CarillonError[] {
  const known = [...settings.flatMap(({ variables }) => variables), ...otherVariables];
  return Object.keys(process.env)
    .filter((name) => name.startsWith("CARILLON_") && !known.includes(name))
    .map((name) => {
      const meant = nearest(name, known);
      const hint =
        meant === "" ? "Unset it; docs/reference/configuration.md has those that there are." : `Did you mean ${meant}?`;
      return new CarillonError("CONFIG_INVALID", `no setting is read from the variable ${name}`, { hint });
    });
}

function print(
  told: readonly Told[],
  problems: readonly CarillonError[],
  file: ConfigFile | undefined,
  goes: { to: string; from: string | null } | undefined,
  terminal: Terminal,
): void {
  const { style } = terminal;
  const textOf = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));
  terminal.table(
    [{ title: "SETTING" }, { title: "VALUE", least: 12 }, { title: "FROM", least: 10 }],
    told.map(({ setting, value, preset, from }) => [
      setting,
      from === null ? { text: preset, paint: style.dim } : plain(textOf(value)),
      from === null ? { text: "default", paint: style.dim } : plain(from),
    ]),
  );
  terminal.line();
  if (goes)
    terminal.line(
      `commands here talk to ${plain(goes.to)}${goes.from === null ? "" : `, as ${plain(goes.from)} says`}`,
    );
  if (!file) terminal.line(style.dim("there is no carillon.config.… here"));
  for (const { code, message, hint } of problems) {
    terminal.line(`${style.bad(`✗ ${code}:`)} ${plain(message)}`);
    if (hint !== "") terminal.line(`  ${style.dim("hint:")} ${plain(hint)}`);
  }
  terminal.line(problems.length === 0 ? style.good("✓ nothing is wrong") : `${problems.length} wrong`);
}
