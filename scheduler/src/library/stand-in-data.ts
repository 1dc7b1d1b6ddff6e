import type { RemoteStandInOptions } from "../remote/stand-in.ts";
import type { StandInStoreOptions } from "../store/postgres/cluster/stand-in.ts";

/** The data that the thread of `StandIn` starts with. */
export interface ThreadData {
  buffer: SharedArrayBuffer;
  /** Where the session is kept: in the store, or by servers. */
  place: { store: StandInStoreOptions } | { servers: RemoteStandInOptions };
  /** The longest standstill that the session outlives. */
  boundMs: number;
  /** The time between two proofs of life. */
  beatMs: number;
}
