import type { Applied, History } from "../history.ts";

export interface Claim {
  readonly run: number;
  readonly fence: number;
  readonly atMs: number;
  readonly sessionId: number;
}

/** Maps the name of each statement that enqueues and claims runs to the index of the session's id among the statement's values. */
const sessionOfInsert = new Map([
  ["run-insert-here", 11],
  ["run-insert-keyed-here", 11],
  ["run-insert-one-here", 1],
]);

/** Returns every claim that the server has granted, by fence. */
export function claimsOf({ applied }: History): Map<number, Claim> {
  const claims = new Map<number, Claim>();
  for (const { name, rows, values, atMs } of applied) {
    const place = sessionOfInsert.get(name);
    if (place !== undefined)
      for (const { id, fence } of rows)
        if (fence !== null)
          claims.set(fence as number, {
            run: id as number,
            fence: fence as number,
            atMs,
            sessionId: values[place] as number,
          });
    if (name !== "claim" && name !== "claim-turn") continue;
    for (const row of rows) {
      if (row.runId === null || row.paused === true) continue;
      const [run, fence] = [row.runId as number, row.fence as number];
      claims.set(fence, { run, fence, atMs, sessionId: values[0] as number });
    }
  }
  return claims;
}

/** Returns the session that had the claim at the given time. A process that joins again moves its claims to its new session. */
export function sessionAt(claim: Claim, adoptions: readonly Applied[], atMs: number): number {
  let session = claim.sessionId;
  for (const { values, rows, atMs: movedMs } of adoptions)
    if (movedMs <= atMs && values[0] === session && rows.some(({ fence }) => fence === claim.fence))
      session = values[1] as number;
  return session;
}
