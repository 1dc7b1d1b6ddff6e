import type { RemoteStandInOptions } from "../remote/stand-in.ts";
import type { StandInStoreOptions } from "../store/postgres/cluster/stand-in.ts";

/** What the thread of `StandIn` is made with. */
export interface ThreadData {
  buffer: SharedArrayBuffer;
  /** Who keeps the session. */
  place: { store: StandInStoreOptions } | { servers: RemoteStandInOptions };
  /** The longest standstill that the session outlives. */
  boundMs: number;
  /** Between two proofs of life. */
  beatMs: number;
}
