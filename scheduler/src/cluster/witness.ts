import { withoutCredentials } from "../base/credentials.ts";
import type { LockNeeds, LockPlace } from "./locks.ts";
import type { SessionIdentity } from "./session-store.ts";

const services: Record<string, string> = {
  zookeeper: "ZooKeeper",
  zookeepers: "ZooKeeper",
  redis: "Redis",
  rediss: "Redis",
};

/** "ZooKeeper at zk1:2181,zk2:2181/billing": a service's URL as operators know it, without what is secret in it. */
export function servicePlace(url: string): string {
  const [, scheme = "", variant, rest = ""] = /^(.*?)(?:\+(.*?))?:\/\/(.*)$/s.exec(withoutCredentials(url)) ?? [];
  return `${services[scheme] ?? scheme}${variant ? ` ${variant}` : ""} at ${rest.split("?")[0]}`;
}

/**
 * The port of a coordination service beside the store: it sees who is alive, and puts in a line those who want to lead.
 * What it says is a hint for speed and for sparing the store; whatever must hold, the store's transactions decide.
 *
 * Times are this machine's monotonic clock.
 */
export interface Witness {
  /** For messages, such as "ZooKeeper". */
  readonly title: string;
  /** Tells this service from another of its kind: kept by the service itself, made with its first use. */
  readonly serviceId: string;
  /**
   * Shows this process under its store session, in place of what it showed before; goes on trying until it succeeds,
   * also after the service lost it. Never rejects.
   */
  announce(shown: Shown): void;
  /**
   * Until when this process is shown for sure: nobody can have seen it go before. 0 when it is not shown, or in doubt.
   * It moves on by itself while the service answers.
   */
  shownUntil(): number;
  /**
   * Since when it has been shown without a gap, as far as this process can know: before, somebody may have seen it go, and
   * said so to the store. Of use only while it is shown.
   */
  shownSince(): number;
  /** The connection is good: what the other methods say is recent. */
  sure(): boolean;
  /** Those of these store sessions that the service does not show, asked now and not remembered. Rejects when it cannot tell. */
  gone(sessionIds: readonly number[]): Promise<number[]>;
  /**
   * Store sessions shown, as last seen; for noticing, never for a decision. The first call begins to follow them, which
   * only the one who is first in line has a use for: undefined until all have been read.
   */
  shown(): ReadonlySet<number> | undefined;
  /** What a member says of itself, asked now. @returns undefined when it is not shown */
  described(sessionId: number): Promise<Shown | undefined>;
  /** Gets in line to lead, and stays there until `stepDown`. */
  contend(): void;
  /** Leaves the line; the next one is first at once. Never rejects. */
  stepDown(): Promise<void>;
  /** Whether this process is first in line, for sure, at this moment. */
  first(): boolean;
  /**
   * Whether nobody is before this process, as far as the service knows: true for who is first, and where the service has
   * lost its memory lately. Then another may still believe that it is first, so this is enough to take what is vacant,
   * by the store's word, and never to depose.
   */
  ahead(): boolean;
  /**
   * Called when `first`, `ahead` or `sure` changed, and, as members, when somebody may be shown no more; not for who comes.
   */
  onChange(listener: (what: "first" | "sure" | "members") => void): void;
  /** Locks for users, of whoever announced itself or not. They are to be closed before this. @throws COORDINATION_… */
  locks(needs: LockNeeds): Promise<LockPlace>;
  /** Ends everything that is shown. Never rejects. */
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
  /** The cluster's id in the store: a service that holds another's is refused. */
  readonly clusterId: string;
  readonly sessionTimeoutMs: number;
  readonly log: (line: string) => void;
  /** Gives the opening up; what was opened ends with `leave`. */
  readonly signal: AbortSignal;
  /** The service's id, asked where it holds nothing of any cluster; default: a new one. What it rejects with ends the opening. */
  readonly nameNew?: () => Promise<string>;
}
