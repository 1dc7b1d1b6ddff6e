import { systemClock } from "../../../scheduler/src/base/clock.ts";
import { silentLog } from "../../../scheduler/src/base/log.ts";
import { CoordinationService } from "../../../scheduler/src/coordination/service.ts";
import type { Store } from "../../../scheduler/src/store/store.ts";
import { StoreClock } from "../../../scheduler/src/store/store-clock.ts";

/**
 * Loads the code of locks before a simulation begins, because a simulation cannot account for the time of loading it at the first
 * use.
 */
export async function loadLocks(store: Store): Promise<void> {
  const { signal } = new AbortController();
  const service = new CoordinationService({
    url: undefined,
    sessionTimeoutMs: 6_000,
    failFast: true,
    log: silentLog,
    signal,
    clock: systemClock,
    storeClock: new StoreClock(systemClock),
  });
  const place = await service.locks(store);
  await place.close();
}
