import type tls from "node:tls";
import { ZooKeeperError } from "../base/errors.ts";
import { limits } from "../base/limits.ts";
import { checkNames } from "../base/options.ts";
import { type Resolve, systemResolve } from "../connection/hosts.ts";
import type { SaslOptions } from "../connection/sasl.ts";

export interface ConnectOptions {
  /** The servers end the session after this time without a sign of life. They may negotiate another value. Default 30,000. */
  readonly sessionTimeoutMs?: number;
  /** How long `connect` tries before it rejects with UNREACHABLE. Default: the session timeout. */
  readonly connectTimeoutMs?: number;
  /** Creates the chroot and missing parents as persistent nodes. Default: the chroot has to exist. */
  readonly createChroot?: boolean;
  /**
   * While no server has a quorum, new sessions begin at a server that answers reads only; see `Session.readOnly`. The servers need
   * `-Dreadonlymode.enabled=true`, and from 3.6 on `localSessionsEnabled=true`. Default false.
   */
  readonly readOnly?: boolean;
  /** Gives `connect` up. */
  readonly signal?: AbortSignal;
  /** Credentials for ACLs, as addAuth takes them. */
  readonly auth?: readonly { readonly scheme: string; readonly credentials: string | Uint8Array }[];
  /** TLS to the servers' secure port; `{}` with the system's authorities, else as node:tls takes it (ca, cert, key, …). */
  readonly tls?: tls.ConnectionOptions;
  /** SASL DIGEST-MD5. */
  readonly sasl?: SaslOptions;
  /** An answer larger than this fails its own request. Default 128 MiB. */
  readonly maxReplyBytes?: number;
  /** A request larger than this is not sent, as a server would hang up: its jute.maxbuffer. Default 1,048,575. */
  readonly maxRequestBytes?: number;
  /** Receives connection problems, each as one line. */
  readonly log?: (line: string) => void;
  /** Resolves a server's name to all its addresses; called again for each round of attempts. Default: as the system resolves it. */
  readonly resolve?: Resolve;
  /** Order of hosts and jitter. Default Math.random. */
  readonly random?: () => number;
}

const names: ReadonlySet<string> = new Set<keyof ConnectOptions>([
  "sessionTimeoutMs",
  "connectTimeoutMs",
  "createChroot",
  "readOnly",
  "signal",
  "auth",
  "tls",
  "sasl",
  "maxReplyBytes",
  "maxRequestBytes",
  "log",
  "resolve",
  "random",
]);

export function checkOptions(
  options: ConnectOptions,
): Required<
  Pick<
    ConnectOptions,
    | "sessionTimeoutMs"
    | "connectTimeoutMs"
    | "maxReplyBytes"
    | "maxRequestBytes"
    | "readOnly"
    | "auth"
    | "log"
    | "resolve"
    | "random"
  >
> & { tls: tls.ConnectionOptions | undefined; sasl: SaslOptions | undefined } {
  checkNames("connect", "", options, names);
  type Numbers = "sessionTimeoutMs" | "connectTimeoutMs" | "maxReplyBytes" | "maxRequestBytes";
  const number = (name: Numbers, usual: number, least: number) => {
    const value = options[name] ?? usual;
    if (Number.isInteger(value) && value >= least && value <= limits.maxSessionTimeoutMs) return value;
    throw new ZooKeeperError(
      "OPTION_INVALID",
      `${name} is ${typeof value === "number" ? value : `a ${typeof value}`}`,
      {
        hint: `a whole number from ${least} to ${limits.maxSessionTimeoutMs}`,
      },
    );
  };
  const sessionTimeoutMs = number("sessionTimeoutMs", limits.defaultSessionTimeoutMs, limits.minSessionTimeoutMs);
  return {
    sessionTimeoutMs,
    connectTimeoutMs: number("connectTimeoutMs", sessionTimeoutMs, 1),
    maxReplyBytes: number("maxReplyBytes", limits.maxReplyBytes, limits.minMaxReplyBytes),
    maxRequestBytes: number("maxRequestBytes", limits.maxRequestBytes, limits.minMaxRequestBytes),
    readOnly: options.readOnly ?? false,
    auth: options.auth ?? [],
    tls: options.tls,
    sasl: options.sasl,
    log: options.log ?? (() => undefined),
    resolve: options.resolve ?? systemResolve,
    random: options.random ?? Math.random,
  };
}
