import type tls from "node:tls";
import { ZooKeeperError } from "../base/errors.ts";
import { limits } from "../base/limits.ts";
import { checkNames } from "../base/options.ts";
import { type Resolve, systemResolve } from "../connection/hosts.ts";
import type { SaslOptions } from "../connection/sasl.ts";

export interface ConnectOptions {
  /** The servers end the session after this time (ms) without a message from the client. They may change the value. Default 30,000. */
  readonly sessionTimeoutMs?: number;
  /** How long `connect` tries (ms) before it rejects with UNREACHABLE. Default: the session timeout. */
  readonly connectTimeoutMs?: number;
  /** If true, creates the chroot and missing parents as persistent nodes. Default: the chroot has to exist. */
  readonly createChroot?: boolean;
  /**
   * If true, new sessions begin at a server that answers only reads while no server has a quorum; see `Session.readOnly`. The servers need
   * `-Dreadonlymode.enabled=true`, and from 3.6 on `localSessionsEnabled=true`. Default false.
   */
  readonly readOnly?: boolean;
  /** Aborts `connect`. */
  readonly signal?: AbortSignal;
  /** Credentials for ACLs, as for `addAuth`. */
  readonly auth?: readonly { readonly scheme: string; readonly credentials: string | Uint8Array }[];
  /** TLS to the servers' secure port: options of node:tls (ca, cert, key, …); `{}` trusts the system's authorities. */
  readonly tls?: tls.ConnectionOptions;
  /** Credentials for SASL DIGEST-MD5. */
  readonly sasl?: SaslOptions;
  /** Largest reply in bytes. A larger reply rejects only its own request. Default 128 MiB. */
  readonly maxReplyBytes?: number;
  /**
   * Largest request in bytes; at most the servers' jute.maxbuffer. A larger request rejects without being sent, because a server would
   * close the connection. Default 1,048,575.
   */
  readonly maxRequestBytes?: number;
  /** Called with each connection problem as one line of text. */
  readonly log?: (line: string) => void;
  /** Resolves a server's name to all its addresses; called again in each round of attempts. Default: the system's resolver. */
  readonly resolve?: Resolve;
  /** Random numbers in [0, 1) for the order of hosts and for jitter. Default Math.random. */
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
