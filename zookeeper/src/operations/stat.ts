import type { Reader } from "../wire/bytes.ts";

/** A node's metadata. Times are epoch ms by the clock of the server that led when they were recorded. */
export interface Stat {
  /** Transaction that created the node: larger for each later creation, so it serves as a fence. */
  readonly czxid: bigint;
  /** Transaction that last changed its data. */
  readonly mzxid: bigint;
  readonly ctimeMs: number;
  readonly mtimeMs: number;
  /** The number of changes of the data (`version`), of the list of children (`cversion`) and of the ACL (`aversion`). */
  readonly version: number;
  readonly cversion: number;
  readonly aversion: number;
  /** The session that owns an ephemeral node; 0n for a persistent one (large negative values mark containers and TTLs). */
  readonly ephemeralOwner: bigint;
  readonly dataLength: number;
  readonly childCount: number;
  /** Transaction that last changed its list of children. */
  readonly pzxid: bigint;
}

export function readStat(reader: Reader): Stat {
  return {
    czxid: reader.long(),
    mzxid: reader.long(),
    ctimeMs: reader.time(),
    mtimeMs: reader.time(),
    version: reader.int(),
    cversion: reader.int(),
    aversion: reader.int(),
    ephemeralOwner: reader.long(),
    dataLength: reader.int(),
    childCount: reader.int(),
    pzxid: reader.long(),
  };
}
