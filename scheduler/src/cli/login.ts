import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { createInterface } from "node:readline";
import type { Client } from "../api/client.ts";
import { client } from "../api/client.ts";
import { CarillonError, isCarillonError, messageOf } from "../base/errors.ts";
import { firstAnswerMs, mayBeDone, patientClient } from "./cluster/calls.ts";
import {
  type Profile,
  profileCalled,
  profilesPath,
  readProfiles,
  serverUrl,
  writeProfiles,
} from "./config/profiles.ts";
import { type ExitCode, exitCodes } from "./exit-codes.ts";
import { chosenReach } from "./reach.ts";
import type { Terminal } from "./screen/terminal.ts";
import { plain } from "./screen/text.ts";
import { ageText } from "./screen/times.ts";
import type { CommonOptions } from "./store-choice.ts";

export interface LoginOptions extends CommonOptions {
  user?: string;
  withToken?: boolean;
  expires?: string;
  code?: string;
}

const longestName = 100;

/**
 * Signs in at a server and stores an API token for the user as a profile. A password is used only to create the token, and is not stored; a
 * token that is given is stored as it is.
 */
export async function login(address: string, options: LoginOptions, terminal: Terminal): Promise<ExitCode> {
  const url = serverUrl(address, "the server", process.env);
  const name = options.profile ?? new URL(url).host;
  if (name === "" || name.length > longestName || name.startsWith("-"))
    throw new CarillonError("USAGE", `a profile cannot be called ${JSON.stringify(name)}`);
  const profiles = readProfiles(process.env);
  const before = Object.hasOwn(profiles.profiles, name) ? profiles.profiles[name] : undefined;
  const profile = options.withToken ? await givenToken(url) : await madeToken(url, options);
  writeProfiles({ current: name, profiles: { ...profiles.profiles, [name]: profile } }, process.env);
  // Revoke the token that was replaced, because no profile contains it any more. If that fails, it stays valid until it expires.
  if (before && before.token !== profile.token)
    await revoke(before).catch((error) => tellUnrevoked(before, error, terminal));
  if (terminal.json) terminal.object({ profile: name, ...shown(profile), current: true });
  else {
    const until = profile.expires === null ? "" : `; it holds until ${profile.expires}`;
    terminal.line(`signed in at ${url} as ${plain(profile.user)}, profile ${plain(name)}${until}`);
  }
  return exitCodes.ok;
}

const shown = ({ server, user, tokenName, expires }: Profile) => ({ server, user, token: tokenName, expires });

async function givenToken(url: string): Promise<Profile> {
  const token = (await firstLine("token", { hidden: true })).trim();
  const me = await patientClient({ url, token }, new AbortController().signal, firstAnswerMs).getMe();
  return { server: url, token, user: me.user, tokenName: null, expires: me.expires };
}

async function madeToken(url: string, { user: given, expires, code }: LoginOptions): Promise<Profile> {
  if (given === undefined && !process.stdin.isTTY)
    throw new CarillonError("USAGE", "who signs in is not said, and nobody can be asked", {
      hint: "Give --user NAME and the password on standard input, or --with-token and a token.",
    });
  const user = given ?? (await firstLine("user"));
  const password = await firstLine("password", { hidden: true });
  const api = browserLike(url);
  const signIn = (shown: string | undefined) =>
    api.signIn({ name: user, password, ...(shown === undefined ? {} : { code: shown }) });
  try {
    await signIn(code);
  } catch (error) {
    // Ask for the code only on a terminal; a script passes it with --code.
    if (!isCarillonError(error, "SECOND_FACTOR_NEEDED") || !process.stdin.isTTY) throw error;
    await signIn(await firstLine("code of the second factor"));
  }
  try {
    // Random digits make the token's name unique, because a second sign-in on this machine creates another token.
    const host = hostname()
      .replace(/[^\w.-]/g, "-")
      .slice(0, longestName / 2);
    const name = `cli@${host}-${randomBytes(4).toString("hex")}`;
    const expiresIn = expires === undefined ? {} : { expiresIn: expires };
    const made = await api.createToken({ name, ...expiresIn, reason: "carillon login" }).catch((error: unknown) => {
      throw mayBeDone(
        error,
        `Look in the console's settings. Revoke the token ${name} if it is there, and sign in again.`,
      );
    });
    return { server: url, token: made.secret, user: made.user, tokenName: made.name, expires: made.expires };
  } finally {
    // The sign-in is not needed any more. If signing out fails, the sign-in remains valid until it expires.
    await api.signOut().catch((error: unknown) => void error);
  }
}

/**
 * Creates an HTTP client that keeps the sign-in's cookie in memory, like a browser. It is used only to sign in, create the token
 * and sign out.
 */
function browserLike(url: string): Client {
  let cookie = "";
  const withCookie: typeof fetch = async (input, init = {}) => {
    const headers = { ...(init.headers as Record<string, string>), ...(cookie === "" ? {} : { cookie }) };
    const signal = AbortSignal.timeout(2 * firstAnswerMs);
    const response = await fetch(input, { ...init, headers, signal, redirect: "error" });
    const [set] = response.headers.getSetCookie();
    if (set !== undefined) cookie = set.split(";")[0] ?? "";
    return response;
  };
  return client({ server: url, fetch: withCookie });
}

/** Removes the profile, and then revokes its token at the server if `login` created the token. */
export async function logout(options: CommonOptions, terminal: Terminal): Promise<ExitCode> {
  const profiles = readProfiles(process.env);
  const name = options.profile ?? profiles.current;
  if (name === null)
    throw new CarillonError("PROFILE_UNKNOWN", "there is no profile to sign out of", {
      hint: "See carillon profiles.",
    });
  const profile = profileCalled(profiles, name);
  const { [name]: _, ...rest } = profiles.profiles;
  writeProfiles({ current: profiles.current === name ? null : profiles.current, profiles: rest }, process.env);
  let revoked = false;
  try {
    revoked = await revoke(profile);
  } catch (error) {
    tellUnrevoked(profile, error, terminal);
  }
  if (terminal.json) terminal.object({ profile: name, removed: true, revoked });
  else
    terminal.line(
      `signed out of ${plain(profile.server)}, profile ${plain(name)}${revoked ? "; its token has ended" : ""}`,
    );
  return exitCodes.ok;
}

async function revoke({ server: url, token, tokenName }: Profile): Promise<boolean> {
  if (tokenName === null) return false;
  const api = patientClient({ url, token }, new AbortController().signal, firstAnswerMs);
  try {
    await api.revokeToken({ token: tokenName, reason: "carillon logout" });
  } catch (error) {
    // The token was revoked or has expired already.
    if (!isCarillonError(error, "SIGN_IN_NEEDED")) throw error;
  }
  return true;
}

function tellUnrevoked({ server, tokenName, expires }: Profile, error: unknown, terminal: Terminal): void {
  terminal.aside(
    `the token ${plain(tokenName ?? "")} could not be ended at ${plain(server)} (${plain(messageOf(error))}): it holds until ${expires ?? "it is revoked"}`,
  );
}

export async function listProfiles(options: CommonOptions, terminal: Terminal): Promise<ExitCode> {
  const { current, profiles } = readProfiles(process.env);
  const names = Object.keys(profiles).sort();
  if (terminal.json) {
    terminal.object(
      names.map((name) => ({ profile: name, ...shown(profiles[name] as Profile), current: name === current })),
    );
    return exitCodes.ok;
  }
  if (names.length === 0) terminal.aside("There are no profiles. Make one: carillon login URL");
  const { style } = terminal;
  const now = Date.now();
  if (names.length > 0)
    terminal.table(
      [
        { title: "" },
        { title: "PROFILE", least: 8 },
        { title: "SERVER", least: 12 },
        { title: "USER", drop: 2 },
        { title: "TOKEN", drop: 1 },
      ],
      names.map((name) => {
        const { server, user, expires } = profiles[name] as Profile;
        const endsMs = expires === null ? null : Date.parse(expires);
        const ended = endsMs !== null && endsMs <= now;
        return [
          name === current ? { text: "*", paint: style.good } : "",
          plain(name),
          plain(server),
          plain(user),
          endsMs === null
            ? "no end is known"
            : {
                text: ended ? `has ended ${ageText(endsMs, now)}` : `ends ${ageText(endsMs, now)}`,
                paint: ended ? style.bad : style.dim,
              },
        ];
      }),
    );
  const reach = chosenReach(options);
  const says = reach.from === null ? "and nothing says which: the one in .carillon" : `as ${reach.from} says`;
  terminal.aside(`Commands here talk to ${reach.kind === "server" ? reach.url : "a store"}, ${says}.`);
  return exitCodes.ok;
}

/** Makes a profile the current one. @throws PROFILE_UNKNOWN */
export async function useProfile(name: string, terminal: Terminal): Promise<ExitCode> {
  const profiles = readProfiles(process.env);
  const { server } = profileCalled(profiles, name);
  writeProfiles({ ...profiles, current: name }, process.env);
  if (terminal.json) terminal.object({ profile: name, current: true });
  else terminal.line(`${plain(name)} it is from now on: ${plain(server)} (${profilesPath(process.env)})`);
  return exitCodes.ok;
}

/** Reads one line from the terminal, after a prompt, or from a pipe. @throws USAGE if the input ends without a line */
async function firstLine(what: string, { hidden = false } = {}): Promise<string> {
  const { stdin, stderr } = process;
  if (!stdin.isTTY) {
    for await (const line of createInterface({ input: stdin })) return line;
    throw new CarillonError("USAGE", `the ${what} was to come from standard input, which is empty`);
  }
  stderr.write(`${what}: `);
  const lines = createInterface({ input: stdin, ...(hidden ? {} : { output: stderr }), terminal: true });
  try {
    return await new Promise<string>((resolve, reject) => {
      lines.once("line", resolve);
      lines.once("SIGINT", () => {
        stderr.write("\n");
        process.exit(exitCodes.interrupted);
      });
      lines.once("close", () => reject(new CarillonError("USAGE", `no ${what} was given`)));
    });
  } finally {
    lines.close();
    if (hidden) stderr.write("\n");
  }
}
