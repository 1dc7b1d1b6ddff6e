import type { Change, Why } from "../../base/change.ts";
import type { Clock } from "../../base/clock.ts";
import type { Store } from "../../store/store.ts";

/** The dependencies of the library's acts on the store. */
export interface Acting {
  /** The clock of the waiting callers. */
  clock: Clock;
  open: () => Promise<{ store: Store }>;
  change: (why: Why) => Change;
}
