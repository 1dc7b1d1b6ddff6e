import { hostname } from "node:os";
import type { Settings } from "./settings.ts";
import type { SessionIdentity } from "./store.ts";
import { version } from "./version.ts";
import { servicePlace } from "./witness.ts";

/** What a process tells of itself when it joins. @param groups whose tasks its worker runs @param coordination the service's URL */
export function identityOf(
  settings: Settings,
  node: string,
  groups: readonly string[],
  coordination: string | undefined,
): SessionIdentity {
  const { scheduler, worker, labels, concurrency, sessionTimeoutMs } = settings;
  const { keepMs, horizonMs, claimAheadMs, address, observer } = settings;
  return {
    node,
    role: scheduler ? "node" : "worker",
    host: hostname(),
    pid: process.pid,
    version,
    timeoutMs: sessionTimeoutMs,
    groups: worker ? groups : [],
    labels,
    capacity: worker ? concurrency : 0,
    settings: {
      retentionMs: keepMs,
      horizonMs,
      claimAheadMs,
      address,
      coordination: coordination === undefined ? null : servicePlace(coordination),
      observer,
    },
  };
}
