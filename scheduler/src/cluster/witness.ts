import { withoutCredentials } from "../base/credentials.ts";
import type { LockNeeds, LockPlace } from "./locks.ts";
import type { SessionIdentity } from "./session-store.ts";

const services: Record<string, string> = {
  zookeeper: "ZooKeeper",
  zookeepers: "ZooKeeper",
  redis: "Redis",
  rediss: "Redis",
};

/** A service's URL as operators write it, without secrets, such as "ZooKeeper at zk1:2181,zk2:2181/billing". */
export function servicePlace(url: string): string {
  const [, scheme = "", variant, rest = ""] = /^(.*?)(?:\+(.*?))?:\/\/(.*)$/s.exec(withoutCredentials(url)) ?? [];
  return `${services[scheme] ?? scheme}${variant ? ` ${variant}` : ""} at ${rest.split("?")[0]}`;
}

/**
 * The port of a coordination service beside the store: it sees which processes are alive, and has a line of the processes that want to
 * lead. Its answers are hints, which make coordination faster and save queries of the store; everything that must hold is decided by the
 * store's transactions.
 *
 * Times are by this machine's monotonic clock.
 */
export interface Witness {
  /** The name for messages, such as "ZooKeeper". */
  readonly title: string;
  /** Identifies this service among others of its kind; stored in the service itself when it is first used. */
  readonly serviceId: string;
  /**
   * Shows this process under its store session, in place of its previous entry. Retries until it succeeds, also after the service lost the
   * entry. Never rejects.
   */
  announce(shown: Shown): void;
  /**
   * Until when this process is certainly shown: no observer can have seen it disappear before that time. 0 if it is not shown, or if that
   * is in doubt. The value rises by itself while the service answers.
   */
  shownUntil(): number;
  /**
   * Since when this process has been shown without a gap, as far as it can know: before that time, an observer may have seen it disappear
   * and reported that to the store. Meaningful only while it is shown.
   */
  shownSince(): number;
  /** True if the connection is good, so that the answers of the other methods are recent. */
  sure(): boolean;
  /**
   * Returns those of these store sessions that the service does not show, by a query and not from a cache. Rejects when it cannot find out.
   */
  gone(sessionIds: readonly number[]): Promise<number[]>;
  /**
   * The store sessions that are shown, as last seen; for noticing changes, never for a decision. The first call begins to follow them,
   * which only the first in line needs; undefined until all have been read.
   */
  shown(): ReadonlySet<number> | undefined;
  /** Queries a member's own entry. @returns undefined when the member is not shown */
  described(sessionId: number): Promise<Shown | undefined>;
  /** Gets in line to lead, and stays there until `stepDown`. */
  contend(): void;
  /** Leaves the line; the next process is then first at once. Never rejects. */
  stepDown(): Promise<void>;
  /** Returns whether this process is certainly first in line at this moment. */
  first(): boolean;
  /**
   * Returns whether no process is before this one, as far as the service knows: true for the first in line, and also for the head of the
   * line if the service has lost its data lately. In the latter case another process may still believe that it is first. So this is enough
   * to take leadership that is vacant by the store's record, and never to depose a leader.
   */
  ahead(): boolean;
  /**
   * Calls the listener when `first`, `ahead` or `sure` changed, and with `members` when a process may no longer be shown; not when a
   * process appears.
   */
  onChange(listener: (what: "first" | "sure" | "members") => void): void;
  /**
   * Opens the locks for users, also in a process that has not announced itself. The caller must close them before this witness.
   * @throws COORDINATION_…
   */
  locks(needs: LockNeeds): Promise<LockPlace>;
  /** Removes everything that this process shows. Never rejects. */
  leave(): Promise<void>;
}

export interface Shown {
  readonly sessionId: number;
  readonly node: string;
  readonly role: SessionIdentity["role"];
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  readonly groups: readonly string[];
  readonly labels?: Readonly<Record<string, string>>;
  readonly capacity?: number | null;
}

export interface WitnessOptions {
  /** As given by the user: zookeeper://host:port,host:port/path, redis://… */
  readonly url: string;
  /** The cluster's id in the store: a service that holds another cluster's id is refused. */
  readonly clusterId: string;
  readonly sessionTimeoutMs: number;
  readonly log: (line: string) => void;
  /** Aborts the opening; afterwards `leave` closes what was opened. */
  readonly signal: AbortSignal;
  /** Returns the id for a service that holds no cluster's data; default: a new one. Its rejection ends the opening. */
  readonly nameNew?: () => Promise<string>;
}
