import type { Reader } from "../wire/bytes.ts";

/** A node's metadata. Times are epoch ms by the clock of the server that was the leader at that time. */
export interface Stat {
  /** Number of the transaction that created the node. It is larger for each later creation, so it serves as a fence. */
  readonly czxid: bigint;
  /** Number of the transaction that last changed the node's data. */
  readonly mzxid: bigint;
  readonly ctimeMs: number;
  readonly mtimeMs: number;
  /** How often the data (`version`), the list of children (`cversion`) and the ACL (`aversion`) were changed. */
  readonly version: number;
  readonly cversion: number;
  readonly aversion: number;
  /** Id of the session that owns an ephemeral node; 0n for a persistent one. Large negative values mark containers and TTL nodes. */
  readonly ephemeralOwner: bigint;
  readonly dataLength: number;
  readonly childCount: number;
  /** Number of the transaction that last changed the node's list of children. */
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
