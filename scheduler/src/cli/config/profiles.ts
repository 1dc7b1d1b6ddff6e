import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { withoutCredentials } from "../../base/credentials.ts";
import { CarillonError, messageOf } from "../../base/errors.ts";
import { isThisMachine } from "../../settings/this-machine.ts";
import { isOn } from "./config-settings.ts";

/** A server at which the user has signed in. */
export interface Profile {
  server: string;
  token: string;
  /** The name of the token's user; `tokenName` is the token's name on the server, `expires` the time at which it expires. */
  user: string;
  tokenName: string | null;
  expires: string | null;
}

export interface Profiles {
  /** The name of the profile that is used if neither a flag nor a variable nor the configuration names a cluster; null: none. */
  current: string | null;
  profiles: Record<string, Profile>;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Returns the path of the profiles file, below the XDG configuration folder; on Windows below the user's application data. */
export function profilesPath(environment: Environment): string {
  const { XDG_CONFIG_HOME: given, APPDATA: roaming } = environment;
  // The XDG specification says that a relative path must be ignored.
  const base = given?.startsWith("/") ? given : process.platform === "win32" && roaming ? roaming : undefined;
  return join(base ?? join(environment.HOME || homedir(), ".config"), "carillon", "profiles.json");
}

const othersMayRead = 0o077;

/** Reads the profiles. @throws CONFIG_INVALID if the file cannot be read or parsed, or other users may read it */
export function readProfiles(environment: Environment): Profiles {
  const path = profilesPath(environment);
  if (!existsSync(path)) return { current: null, profiles: {} };
  const wrong = (what: string, hint: string, cause?: unknown) =>
    new CarillonError("CONFIG_INVALID", `${path} ${what}`, { hint, cause });
  if (process.platform !== "win32" && (statSync(path).mode & othersMayRead) !== 0)
    throw wrong(
      "has tokens in it, and other users of this machine may read it",
      `Make it yours alone: chmod 600 ${path}`,
    );
  let read: unknown;
  try {
    read = JSON.parse(readFileSync(path, "utf8"));
  } catch (cause) {
    throw wrong(
      `cannot be read: ${messageOf(cause)}`,
      "Mend it, or remove it and sign in again: carillon login URL",
      cause,
    );
  }
  if (isProfiles(read)) return read;
  throw wrong("does not hold profiles", "Remove it and sign in again: carillon login URL");
}

const isProfiles = (read: unknown): read is Profiles => {
  const { current, profiles } = (read ?? {}) as Partial<Profiles>;
  return (
    (current === null || typeof current === "string") &&
    typeof profiles === "object" &&
    profiles !== null &&
    Object.values(profiles).every((one) => typeof one?.server === "string" && typeof one.token === "string")
  );
};

/** Writes the file atomically: if the process is killed during the write, the former file remains. @throws CONFIG_INVALID */
export function writeProfiles(profiles: Profiles, environment: Environment): void {
  const path = profilesPath(environment);
  const beside = `${path}.${process.pid}`;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    writeFileSync(beside, `${JSON.stringify(profiles, null, 2)}\n`, { mode: 0o600 });
    // Set the mode explicitly: the umask can change the mode of a new file, and a file that already exists keeps its mode.
    chmodSync(beside, 0o600);
    renameSync(beside, path);
  } catch (cause) {
    throw new CarillonError("CONFIG_INVALID", `${path} cannot be written: ${messageOf(cause)}`, {
      hint: "Set XDG_CONFIG_HOME to a folder that you may write to.",
      cause,
    });
  }
}

/** Returns the profile with this name. @throws PROFILE_UNKNOWN */
export function profileCalled({ profiles }: Profiles, name: string): Profile {
  const found = Object.hasOwn(profiles, name) ? profiles[name] : undefined;
  if (found) return found;
  const names = Object.keys(profiles);
  throw new CarillonError("PROFILE_UNKNOWN", `there is no profile ${JSON.stringify(name)}`, {
    hint:
      names.length === 0
        ? "Make one: carillon login URL"
        : `There are ${names.join(", ")}; or: carillon login URL --profile ${name}`,
  });
}

/**
 * Checks a server's URL. @returns the URL without a slash at its end
 * @throws USAGE for a text that is not an HTTP URL, for a URL with a user name or a password, and for a URL with which a token would
 * be sent unencrypted
 */
export function serverUrl(text: string, where: string, environment: Environment): string {
  const wrong = (what: string, hint: string) => new CarillonError("USAGE", `${where} ${what}`, { hint });
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol))
    throw wrong(
      `${JSON.stringify(withoutCredentials(text))} is no address of a server`,
      "Give http://127.0.0.1:7373, https://carillon.example or the like.",
    );
  const { protocol, hostname, username, password, pathname, origin } = new URL(text);
  if (username !== "" || password !== "" || pathname.includes("@"))
    throw wrong("has a name or a password in it", "Leave them out, and sign in: carillon login URL");
  if (protocol === "http:" && !isThisMachine(hostname) && !isOn("CARILLON_PLAIN_HTTP", environment))
    throw wrong(
      `${JSON.stringify(withoutCredentials(text))} would have the token sent unencrypted`,
      "Give an https:// address: a proxy before the server ends TLS. In a network that you trust: CARILLON_PLAIN_HTTP=1.",
    );
  return `${origin}${pathname.replace(/\/+$/, "")}`;
}
