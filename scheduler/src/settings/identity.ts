import { hostname } from "node:os";
import { version } from "../base/version.ts";
import { servicePlace } from "../cluster/membership-provider.ts";
import type { SessionIdentity } from "../cluster/session-store.ts";
import type { Release } from "../task/release.ts";
import { certificatesOf } from "./certificates.ts";
import type { Settings } from "./settings.ts";

/**
 * Returns what a process registers about itself when it joins the cluster.
 * @param groups the groups whose tasks its worker runs
 * @param services the store, whose URL may name certificates, and the URL of the coordination service
 */
export function identityOf(
  settings: Settings,
  node: string,
  groups: readonly string[],
  { store, coordination }: { store?: string | undefined; coordination?: string | undefined },
  { release, nowMs }: { release: Release | null; nowMs: number },
): SessionIdentity {
  const certificates = certificatesOf(store, process.env.NODE_EXTRA_CA_CERTS, nowMs);
  const { scheduler, worker, labels, concurrency, sessionTimeoutMs } = settings;
  const { keepMs, horizonMs, claimAheadMs, address, observer, alarms } = settings;
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
      alarms: alarms !== null,
      ...(certificates.length > 0 && { certificates }),
      ...(release && { release: release.name }),
    },
  };
}
