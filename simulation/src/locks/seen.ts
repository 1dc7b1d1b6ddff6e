import type { Applied } from "../history.ts";
import { type GiveUp, type Grant, type LockHistory, processOf } from "../lock-history.ts";

/** Names of the lock statements that the recorder stores, because they grant or end locks. */
export const lockStatements: readonly string[] = [
  "lock-session-open",
  "lock-session-end",
  "lock-enter",
  "lock-leave",
  "lock-evict",
  "grace-lock-first-take",
  "grace-lock-take",
  "grace-lock-write",
  "grace-lock-vacate",
];

export type Service = Pick<LockHistory, "grants" | "giveUps" | "acts">;
type Lives = readonly { readonly name: string; readonly life: number; readonly fromMs: number }[];

/** Derives which locks the store has granted and ended from the statements that it carried out, in their order. */
export function serviceOf(applied: readonly Applied[], lives: Lives, graceMs: number): Service {
  const seen = new Seen(lives, graceMs);
  for (const one of applied) seen.read(one);
  return seen;
}

class Seen implements Service {
  readonly grants: Grant[] = [];
  readonly giveUps: GiveUp[] = [];
  readonly acts: LockHistory["acts"][number][] = [];
  readonly #lives: Lives;
  readonly #graceMs: number;
  /** The latest grants, by the token of a node in a queue, or by the holder's name for a grace lock. */
  readonly #nodes = new Map<string, Grant>();
  readonly #inLine = new Set<string>();
  readonly #sessions = new Map<string, { process: string; owner: string; endedMs: number | null }>();

  constructor(lives: Lives, graceMs: number) {
    this.#lives = lives;
    this.#graceMs = graceMs;
  }

  read({ name, values, rows, who, atMs }: Applied): void {
    const [row] = rows;
    const [first, second] = values as [string, string];
    const lock = String(first).replace(/^\w+:/, "");
    const did = rows.length > 0;
    switch (name) {
      case "lock-session-open":
        this.#sessions.set(String(row?.id), { ...this.#by(who, atMs), endedMs: null });
        break;
      case "lock-session-end":
        if (did) this.#endSession(String(first), atMs);
        break;
      case "lock-enter":
        if (row && row.rank !== null) this.#enter(lock, second, Number(row.fence), atMs);
        break;
      case "lock-leave":
        this.#leave(lock, second, who, did, atMs);
        break;
      case "lock-evict":
        for (const token of values[1] as string[]) {
          this.#inLine.delete(token);
          this.#end(this.#nodes.get(token), "vanished", atMs);
        }
        break;
      case "grace-lock-first-take":
      case "grace-lock-take":
        if (did)
          this.#give(second, { lock, ...this.#by(who, atMs), session: second, fence: row?.fence as number, atMs });
        break;
      case "grace-lock-write":
        this.#write(lock, second, who, { released: values[3] === true, did, atMs });
        break;
      case "grace-lock-vacate":
        if (did) this.#end(this.#nodes.get(second), "vanished", atMs);
    }
  }

  #by(who: string, atMs: number): { process: string; owner: string } {
    const [owner = ""] = who.split("#");
    const life = this.#lives.findLast(({ name, fromMs }) => name === owner && fromMs <= atMs)?.life ?? 0;
    return { process: processOf(owner, life), owner };
  }

  #give(
    node: string,
    given: { lock: string; process: string; owner: string; session: string; fence: number; atMs: number },
  ) {
    const { atMs, ...rest } = given;
    const graceMs = node === given.session ? this.#graceMs : null;
    const grant: Grant = { ...rest, givenMs: atMs, endedMs: null, ended: null, graceMs };
    this.#nodes.set(node, grant);
    this.grants.push(grant);
  }

  #end(grant: Grant | undefined, how: "released" | "vanished", atMs: number): void {
    if (!grant || grant.endedMs !== null) return;
    grant.endedMs = atMs;
    grant.ended = how;
  }

  #endSession(id: string, atMs: number): void {
    const session = this.#sessions.get(id);
    if (session) session.endedMs ??= atMs;
    for (const grant of this.grants)
      if (grant.graceMs === null && grant.session === id) this.#end(grant, "vanished", atMs);
  }

  /** Records that a token joined a queue. A token that is already in the queue keeps its place. */
  #enter(lock: string, token: string, fence: number, atMs: number): void {
    if (this.#inLine.has(token)) return;
    this.#inLine.add(token);
    const [session = ""] = token.split(".");
    const known = this.#sessions.get(session) ?? { process: "nobody", owner: "nobody", endedMs: null };
    this.#give(token, { lock, process: known.process, owner: known.owner, session, fence, atMs });
    // The session has already ended, so the new node has no holder.
    if (known.endedMs !== null) this.#end(this.#nodes.get(token), "vanished", atMs);
  }

  #leave(lock: string, token: string, who: string, did: boolean, atMs: number): void {
    const grant = this.#nodes.get(token);
    const wasThere = this.#inLine.delete(token);
    // A node that an ended session has left in a queue has no holder, so its deletion by any process is no release.
    const changed = did && !(wasThere && grant?.ended === "vanished");
    if (!grant && !changed) return;
    this.giveUps.push({ lock, process: this.#by(who, atMs).process, fence: grant?.fence ?? -1, atMs, changed });
    if (changed && wasThere) this.#end(grant, "released", atMs);
  }

  #write(
    lock: string,
    holder: string,
    who: string,
    { released, did, atMs }: { released: boolean; did: boolean; atMs: number },
  ) {
    const grant = this.#nodes.get(holder);
    const { process } = this.#by(who, atMs);
    const fence = grant?.fence ?? -1;
    if (released) this.giveUps.push({ lock, process, fence, atMs, changed: did });
    else if (did) this.acts.push({ lock, process, fence, atMs });
    if (released && did) this.#end(grant, "released", atMs);
  }
}
