import net from "node:net";
import tls from "node:tls";
import { ZooKeeperError } from "../base/errors.ts";
import { checkNames } from "../base/options.ts";
import { parseConnectString } from "./connect-string.ts";
import type { Server } from "./hosts.ts";

export interface FourLetterOptions {
  /** TLS to the server's secure port, as for `connect`. */
  readonly tls?: tls.ConnectionOptions;
  /** The longest wait for the answer, in ms. Default 5,000. */
  readonly limitMs?: number;
  /** Aborts the call, which then rejects with ABORTED. */
  readonly signal?: AbortSignal;
}

const optionNames: ReadonlySet<string> = new Set<keyof FourLetterOptions>(["tls", "limitMs", "signal"]);

/**
 * Sends a four-letter word (an administrative command) to one server, outside of any session: `srvr` (its mode and version), `mntr`
 * (its counters), `ruok`, `cons`, `dump`, … Every word except `srvr` must be in the server's `4lw.commands.whitelist`.
 * @param server `zk1:2181`
 * @returns the answer's text; "" for a word that the server does not know
 * @throws UNREACHABLE without an answer, UNIMPLEMENTED if the server does not allow the word, ABORTED, OPTION_INVALID,
 * CONNECT_STRING_INVALID, PATH_INVALID
 */
export async function fourLetterWord(server: string, word: string, options: FourLetterOptions = {}): Promise<string> {
  checkNames(`the word ${word}`, "", options, optionNames);
  const { limitMs = 5_000, signal } = options;
  const { hosts, chroot } = parseConnectString(server);
  const [host, more] = hosts;
  if (!host || more || chroot !== "") {
    const hint = "give host:port of one server";
    throw new ZooKeeperError("CONNECT_STRING_INVALID", `${server} is not the address of one server`, { hint });
  }
  if (!/^[a-z]{4}$/.test(word)) {
    const hint = "for example srvr, mntr or ruok";
    throw new ZooKeeperError("OPTION_INVALID", `${JSON.stringify(word)} is no four-letter word`, { hint });
  }
  const text = await askWord({ name: host.host, ...host }, word, { tls: options.tls, limitMs, signal }).catch(
    (error: Error) => {
      if (signal?.aborted) {
        throw new ZooKeeperError("ABORTED", `${word} to ${server}: given up by the caller`, { cause: signal.reason });
      }
      const hint = "check that the server runs and can be reached";
      throw new ZooKeeperError("UNREACHABLE", `${word} to ${server}: ${error.message}`, { hint, cause: error });
    },
  );
  if (!text.includes("is not executed because it is not in the whitelist")) return text;
  const hint = "add the word to 4lw.commands.whitelist on the server";
  throw new ZooKeeperError("UNIMPLEMENTED", `${word} to ${server}: the server does not allow it`, { hint });
}

/** Sends a four-letter word and returns the answer's text. @throws the network error, or an error if the limit passes or `signal` aborts */
export function askWord(
  { name, host, port }: Server,
  word: string,
  { tls: secure, limitMs, signal }: FourLetterOptions & { readonly limitMs: number },
): Promise<string> {
  return new Promise((resolve, reject) => {
    const begin = () => socket.write(word);
    const socket: net.Socket = secure
      ? tls.connect({ servername: net.isIP(name) ? "" : name, ...secure, host, port }, begin)
      : net.connect({ host, port }, begin);
    let text = "";
    const late = setTimeout(() => socket.destroy(new Error(`no answer within ${limitMs} ms`)), limitMs);
    const abort = () => socket.destroy(new Error("given up"));
    signal?.addEventListener("abort", abort, { once: true });
    if (signal?.aborted) abort();
    socket.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
    });
    socket.on("error", reject);
    socket.on("close", () => {
      clearTimeout(late);
      signal?.removeEventListener("abort", abort);
      resolve(text); // no effect if `error` was emitted before
    });
  });
}
