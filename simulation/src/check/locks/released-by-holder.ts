import type { Grant, LockChecker } from "../../lock-history.ts";

/** Checks that a release takes effect only for the present holder, and that a node is released only by its own holder. */
export const releasedByHolder: LockChecker = {
  invariant: "11: a release by who does not hold it, or under an old fence, changes nothing",
  check({ grants, giveUps, slackMs }) {
    const given = new Map<string, Grant>();
    for (const grant of grants) given.set(`${grant.lock} ${grant.fence}`, grant);
    const own = new Set<string>();
    for (const { lock, process, fence, atMs, changed } of giveUps) {
      const key = `${lock} ${fence}`;
      const grant = given.get(key);
      own.add(`${key} ${process}`);
      if (!changed) continue;
      const told = `${lock}: a release by ${process} under fence ${fence} was carried out`;
      if (!grant) return { what: `${told}, which was never given`, atMs };
      if (grant.process !== process) return { what: `${told}, which is ${grant.process}'s`, atMs };
      if (grant.endedMs !== null && grant.endedMs + slackMs < atMs)
        return { what: `${told}, ${(atMs - grant.endedMs).toFixed(1)} ms after that was over`, atMs };
    }
    for (const { lock, fence, process, ended, endedMs } of grants)
      if (ended === "released" && !own.has(`${lock} ${fence} ${process}`))
        return {
          what: `${lock}: fence ${fence} of ${process} was given up, and not by it`,
          atMs: endedMs ?? undefined,
        };
    return undefined;
  },
};
