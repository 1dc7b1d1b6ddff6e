import type { RemoteStandInOptions } from "../remote/stand-in.ts";
import type { StandInStoreOptions } from "../store/postgres/cluster/stand-in.ts";

/** The data that the thread of `StandIn` starts with. */
export interface ThreadData {
  buffer: SharedArrayBuffer;
  /** Who keeps the session: the store, or servers. */
  place: { store: StandInStoreOptions } | { servers: RemoteStandInOptions };
  /** The longest standstill of the event loop that the session survives, in milliseconds. */
  boundMs: number;
  /** The interval of proofs of life, in milliseconds. */
  beatMs: number;
}
