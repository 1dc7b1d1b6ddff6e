import { existsSync } from "node:fs";
import { CarillonError } from "../base/errors.ts";
import { limits } from "../base/limits.ts";
import type { ServerChoice } from "./cluster/calls.ts";
import { profileCalled, readProfiles, serverUrl } from "./config/profiles.ts";
import { type ExitCode, exitCodes } from "./exit-codes.ts";
import type { Cluster } from "./nodes/cluster.ts";
import { type CommonOptions, defaultDirectory, withStore } from "./store-choice.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** The cluster that a command uses; `from` names the flag, variable or file that selected it. */
export type Reach =
  | ({ kind: "server"; profile: string | null; from: string } & ServerChoice)
  | { kind: "store"; from: string | null };

/**
 * Chooses the cluster. The command line takes precedence over the environment, and the environment over the project's configuration file or
 * `.carillon` folder. The profile of the last sign-in is used only if none of them names a cluster, so that a command in a project folder
 * never reaches another cluster by accident.
 * @throws USAGE, PROFILE_UNKNOWN, CONFIG_INVALID
 */
export function chosenReach(options: CommonOptions, environment: Environment = process.env): Reach {
  const { server = [], profile, store, directory, file } = options;
  const byStore = (from: string | null): Reach => ({ kind: "store", from });
  const byServer = (text: string, from: string): Reach => {
    const url = serverUrl(text, from, environment);
    return {
      kind: "server",
      url,
      token: environment.CARILLON_TOKEN || tokenFor(url, environment),
      profile: null,
      from,
    };
  };
  const byProfile = (name: string, from: string): Reach => {
    const { server: text, token } = profileCalled(readProfiles(environment), name);
    return { kind: "server", url: serverUrl(text, `profile ${name}`, environment), token, profile: name, from };
  };
  const said = [
    server.length > 0 ? "--server" : "",
    profile === undefined ? "" : "--profile",
    store === undefined && directory === undefined ? "" : store === undefined ? "--directory" : "--store",
  ].filter((flag) => flag !== "");
  if (said.length > 1)
    throw new CarillonError("USAGE", `${said.join(" and ")} were given, and a command talks to one cluster`, {
      hint: "Give one of them.",
    });
  if (server.length > 1 || server[0]?.includes(","))
    throw new CarillonError("USAGE", "several servers were given, and a command asks one", {
      hint: "Give one --server URL. Only carillon worker takes several.",
    });
  if (server[0] !== undefined) return byServer(server[0], "--server");
  if (profile !== undefined) return byProfile(profile, "--profile");
  if (said.length > 0) return byStore(said[0] as string);
  if (environment.CARILLON_SERVER) return byServer(environment.CARILLON_SERVER, "CARILLON_SERVER");
  if (environment.CARILLON_PROFILE) return byProfile(environment.CARILLON_PROFILE, "CARILLON_PROFILE");
  if (environment.CARILLON_STORE) return byStore("CARILLON_STORE");
  if (environment.DATABASE_URL) return byStore("DATABASE_URL");
  if (environment.CARILLON_DIRECTORY) return byStore("CARILLON_DIRECTORY");
  const { server: fileServer, profile: fileProfile, store: fileStore, directory: fileDirectory } = file?.values ?? {};
  const inFile = (name: string) => `${name} of ${file?.path}`;
  if (typeof fileServer === "string") return byServer(fileServer, inFile("server"));
  if (typeof fileProfile === "string") return byProfile(fileProfile, inFile("profile"));
  if (typeof fileStore === "string") return byStore(inFile("store"));
  if (typeof fileDirectory === "string") return byStore(inFile("directory"));
  if (existsSync(defaultDirectory)) return byStore(`the folder ${defaultDirectory}`);
  const { current } = readProfiles(environment);
  return current === null ? byStore(null) : byProfile(current, "the last carillon login");
}

/** Returns the token of a profile with exactly this address, because a token must not be sent to another address. */
function tokenFor(url: string, environment: Environment): string | undefined {
  const { profiles, current } = readProfiles(environment);
  const here = Object.entries(profiles).filter(([, { server }]) => server === url);
  return (here.find(([name]) => name === current) ?? here[0])?.[1].token;
}

export interface Reached {
  cluster: Cluster;
  /** Aborted by the first Ctrl-C; all waits of a command end with this signal. */
  signal: AbortSignal;
}

/**
 * Opens the cluster for one command, through its store or a server, and closes it afterwards. The first Ctrl-C ends waits, a second one
 * ends the process.
 * @param make true: creates the store if it does not exist yet
 */
export async function withCluster(
  options: CommonOptions & { reason?: string },
  work: (reached: Reached) => Promise<ExitCode>,
  { make = false }: { make?: boolean } = {},
): Promise<ExitCode> {
  const { checked, checkText } = await import("./cluster/checked.ts");
  if (options.reason !== undefined) checkText("reason", options.reason, 0, limits.reasonLength);
  const reach = chosenReach(options);
  if (reach.kind === "store") {
    const { clusterByStore } = await import("./cluster/by-store.ts");
    return withStore(
      options,
      ({ tower, store, nowMs, place, signal }) =>
        work({ cluster: checked(clusterByStore(tower, store, nowMs, place)), signal }),
      { make },
    );
  }
  if (reach.token === undefined)
    throw new CarillonError("SIGN_IN_NEEDED", `there is no token for ${reach.url}`, {
      hint: `Sign in: carillon login ${reach.url}; or set CARILLON_TOKEN.`,
    });
  const { clusterByServer } = await import("./cluster/by-server.ts");
  return interruptible(async (signal) => {
    const cluster = await clusterByServer(reach);
    try {
      return await work({ cluster: checked(cluster), signal });
    } finally {
      await cluster.close();
    }
  });
}

/** Runs `work`: the first Ctrl-C aborts its signal, a second Ctrl-C ends the process. */
export async function interruptible(work: (signal: AbortSignal) => Promise<ExitCode>): Promise<ExitCode> {
  const interrupted = new AbortController();
  const onInterrupt = () => {
    if (interrupted.signal.aborted) process.exit(exitCodes.interrupted);
    interrupted.abort();
  };
  process.on("SIGINT", onInterrupt);
  try {
    const exit = await work(interrupted.signal);
    return interrupted.signal.aborted ? exitCodes.interrupted : exit;
  } finally {
    process.off("SIGINT", onInterrupt);
  }
}

/**
 * Refuses a command that works only on a store if a server is selected.
 * @throws STORE_NEEDED: another store must not be used instead of the server's
 */
export function requireStore(options: CommonOptions, what: string): void {
  const reach = chosenReach(options);
  if (reach.kind === "store") return;
  throw new CarillonError("STORE_NEEDED", `${what} needs the store, and ${reach.from} names ${reach.url}`, {
    hint: "Give --store URL or --directory, on a machine that reaches the store.",
  });
}
