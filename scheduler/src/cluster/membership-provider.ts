import { withoutCredentials } from "../base/credentials.ts";
import type { LockNeeds, LockPlace } from "./locks.ts";
import type { SessionIdentity } from "./session-store.ts";

const services: Record<string, string> = {
  zookeeper: "ZooKeeper",
  zookeepers: "ZooKeeper",
  redis: "Redis",
  rediss: "Redis",
};

/** Describes a coordination service by its URL, without secrets: "ZooKeeper at zk1:2181,zk2:2181/billing". */
export function servicePlace(url: string): string {
  const [, scheme = "", variant, rest = ""] = /^(.*?)(?:\+(.*?))?:\/\/(.*)$/s.exec(withoutCredentials(url)) ?? [];
  return `${services[scheme] ?? scheme}${variant ? ` ${variant}` : ""} at ${rest.split("?")[0]}`;
}

/**
 * The interface of a coordination service that is used beside the store. The service lists which processes are alive, and has a queue of
 * the processes that want to lead. Its reports are only hints, which speed up coordination and save queries of the store; every
 * guarantee rests on the store's transactions.
 *
 * All times are those of this machine's monotonic clock, in ms.
 */
export interface MembershipProvider {
  /** The service's name for messages, such as "ZooKeeper". */
  readonly title: string;
  /** Identifies this installation of the service. The id is stored in the service itself at the first use. */
  readonly serviceId: string;
  /**
   * Lists this process under its store session, in place of its previous entry. Retries until it succeeds, and lists the process again if
   * the service loses the entry. Never rejects.
   */
  announce(shown: Shown): void;
  /**
   * The time until which this process is certainly listed: no observer can have seen its entry disappear before. 0 if the process is not
   * listed or this is uncertain. The time moves forward automatically while the service answers.
   */
  shownUntil(): number;
  /**
   * The time since which this process has certainly been listed without interruption. Before that time, an observer may have seen the entry
   * disappear and reported that to the store. Meaningful only while the process is listed.
   */
  shownSince(): number;
  /** True while the connection is good, so that the values of the other methods are recent. */
  sure(): boolean;
  /**
   * Queries which of these store sessions the service does not list; does not use cached data. Rejects if the service cannot be queried.
   */
  gone(sessionIds: readonly number[]): Promise<number[]>;
  /**
   * The listed store sessions as last received; suitable for detecting changes, not for decisions. The first call begins to subscribe to
   * the list, which only the first in the queue needs. Undefined until the whole list has been read.
   */
  shown(): ReadonlySet<number> | undefined;
  /** Queries the entry of a member. @returns undefined if the member is not listed */
  described(sessionId: number): Promise<Shown | undefined>;
  /** Enters the queue of processes that want to lead, and stays there until `stepDown`. */
  contend(): void;
  /** Leaves the queue, so that the next process is first at once. Never rejects. */
  stepDown(): Promise<void>;
  /** True if this process is certainly the first in the queue now. */
  first(): boolean;
  /**
   * True if no process precedes this one in the queue, as far as the service knows. This holds for the first in the queue, and also for the
   * head of a queue whose data the service has recently lost; in that case another process may still believe that it is first.
   * So `ahead` suffices to take leadership that is vacant in the store, but not to depose a leader.
   */
  ahead(): boolean;
  /**
   * Registers a listener that is called when `first`, `ahead` or `sure` has changed, and with `members` when a process may no longer be
   * listed. It is not called when a process appears.
   */
  onChange(listener: (what: "first" | "sure" | "members") => void): void;
  /**
   * Opens the locks for users; this also works in a process that has not announced itself. The caller must close the locks before it calls
   * `leave`.
   * @throws COORDINATION_…
   */
  locks(needs: LockNeeds): Promise<LockPlace>;
  /** Removes all entries of this process from the service. Never rejects. */
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

export interface MembershipProviderOptions {
  /** The URL as configured: zookeeper://host:port,host:port/path, redis://… */
  readonly url: string;
  /** The cluster's id in the store. A service that holds the id of another cluster is refused. */
  readonly clusterId: string;
  readonly sessionTimeoutMs: number;
  readonly log: (line: string) => void;
  /** Cancels the opening of the service. `leave` afterwards closes what has been opened so far. */
  readonly signal: AbortSignal;
  /** Called if the service holds no cluster's data, to get its new id; default: a random id. If it rejects, opening the service fails. */
  readonly nameNew?: () => Promise<string>;
}
