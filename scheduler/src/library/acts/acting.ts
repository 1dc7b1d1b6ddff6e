import type { Change, Why } from "../../base/change.ts";
import type { Clock } from "../../base/clock.ts";
import type { Store } from "../../store/store.ts";

/** What the library's operations on tasks and runs need from this process. */
export interface Acting {
  /** The clock by which callers wait and time out. */
  clock: Clock;
  open: () => Promise<{ store: Store }>;
  change: (why: Why) => Change;
}
