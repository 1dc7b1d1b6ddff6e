import type { Applied, History } from "../history.ts";

export interface Claim {
  readonly run: number;
  readonly fence: number;
  readonly atMs: number;
  readonly sessionId: number;
}

/** For an enqueue that claims: the index of the session among the statement's values. */
const sessionOfInsert = new Map([
  ["run-insert-here", 11],
  ["run-insert-keyed-here", 11],
  ["run-insert-one-here", 1],
]);

/** Every claim that the server granted, by fence. */
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

/** The session to which a claim belonged at some moment: adoption moves it. */
export function sessionAt(claim: Claim, adoptions: readonly Applied[], atMs: number): number {
  let session = claim.sessionId;
  for (const { values, rows, atMs: movedMs } of adoptions)
    if (movedMs <= atMs && values[0] === session && rows.some(({ fence }) => fence === claim.fence))
      session = values[1] as number;
  return session;
}
