import type { RemoteStandInOptions } from "../remote/stand-in.ts";
import type { StandInStoreOptions } from "../store/postgres/cluster/stand-in.ts";

/** The data that the thread of `StandIn` receives when it starts. */
export interface ThreadData {
  buffer: SharedArrayBuffer;
  /** Where the thread sends the session's heartbeats: to the store, or to servers. */
  place: { store: StandInStoreOptions } | { servers: RemoteStandInOptions };
  /** The session survives while the event loop is blocked for up to this time, in ms. */
  boundMs: number;
  /** The interval of the heartbeats, in ms. */
  beatMs: number;
}
