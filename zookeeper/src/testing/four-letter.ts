import { fourLetterWord } from "../connection/four-letter-word.ts";

/**
 * Sends a four-letter word to a server on this machine and returns the answer.
 * @throws UNREACHABLE if there is no answer within `limitMs`, UNIMPLEMENTED if the server does not allow the word
 */
export function fourLetter(port: number, word: string, limitMs = 2_000): Promise<string> {
  return fourLetterWord(`127.0.0.1:${port}`, word, { limitMs });
}

export type Mode = "standalone" | "leader" | "follower" | "observer";

/** Returns the mode in an answer to `srvr`; undefined if the server does not serve clients. */
export function modeIn(srvr: string): Mode | undefined {
  return /^Mode: (\w+)$/m.exec(srvr)?.[1] as Mode | undefined;
}

export interface Connection {
  /** The client's address, `host:port`. */
  readonly client: string;
  /** The session's id as the server prints it, `0x…`. */
  readonly session: string;
  readonly timeoutMs: number;
  readonly queued: number;
  readonly received: number;
  readonly sent: number;
}

/** Parses an answer to `cons`: the connections with a session. */
export function connectionsIn(cons: string): readonly Connection[] {
  return cons.split("\n").flatMap((line) => {
    const [, client, details] = /^ \/?([^[]+)\[[^\]]*\]\((.*)\)$/.exec(line) ?? [];
    if (client === undefined || details === undefined) return [];
    const known = new Map(details.split(",").map((pair) => pair.split("=") as [string, string]));
    const session = known.get("sid");
    if (session === undefined) return []; // a connection without a session, for example one that sends a four-letter word
    const count = (name: string) => Number(known.get(name) ?? 0);
    const counts = { queued: count("queued"), received: count("recved"), sent: count("sent") };
    return [{ client, session, timeoutMs: count("to"), ...counts }];
  });
}

/** Matches the section of `dump` that lists sessions and their ephemeral nodes; another section follows. */
const ephemeralSection = /^Sessions with Ephemerals \(\d+\):\n((?:0x[\da-f]+:\n|\t.*\n)*)/m;

/**
 * Parses an answer to `dump`: the sessions (`0x…`) with their ephemeral nodes. Sessions without nodes, which servers list too, are left
 * out.
 */
export function ephemeralsIn(dump: string): ReadonlyMap<string, readonly string[]> {
  const listed = listsIn(ephemeralSection.exec(dump)?.[1] ?? "");
  return new Map([...listed].filter(([, nodes]) => nodes.length > 0));
}

/** Parses an answer to `wchp`: the watched paths, each with the sessions (`0x…`) that watch it. */
export function watchedIn(wchp: string): ReadonlyMap<string, readonly string[]> {
  return listsIn(wchp);
}

/** Parses an answer to `mntr`: the server's counters by name, without the prefix `zk_`. */
export function countersIn(mntr: string): ReadonlyMap<string, number> {
  const pairs = [...mntr.matchAll(/^zk_(\S+)\t(\S+)$/gm)].map(([, name = "", value]) => [name, Number(value)] as const);
  return new Map(pairs.filter(([, value]) => !Number.isNaN(value)));
}

/** Parses lists: each list begins with an unindented line (a path or a session's id), and indented lines follow. */
function listsIn(text: string): ReadonlyMap<string, readonly string[]> {
  const lists = new Map<string, string[]>();
  let current: string[] | undefined;
  for (const line of text.split("\n")) {
    const head = /^(\/.*?|0x[\da-f]+):?$/.exec(line)?.[1];
    if (head !== undefined) {
      current = [];
      lists.set(head, current);
    } else if (line.startsWith("\t")) current?.push(line.trim());
  }
  return lists;
}
