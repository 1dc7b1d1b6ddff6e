import type { SessionIdentity } from "../../../cluster/session-store.ts";

/** The columns of a session's row that describe its process, in the order of the values that `identityValues` returns. */
export const identityColumns = "node, role, host, pid, version, timeout_ms, groups, labels, capacity, settings";

export const identityValues = (identity: SessionIdentity): unknown[] => [
  identity.node,
  identity.role,
  identity.host,
  identity.pid,
  identity.version,
  identity.timeoutMs,
  identity.groups ?? [],
  JSON.stringify(identity.labels ?? {}),
  identity.capacity ?? null,
  identity.settings ? JSON.stringify(identity.settings) : null,
];
