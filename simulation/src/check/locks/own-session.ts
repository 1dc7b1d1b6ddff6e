import type { Grant, LockChecker } from "../../lock-history.ts";

/**
 * A process that reports to own a node was granted this node in its current life, and the node's session has not ended. A node that
 * a former session left behind has no holder, though it still exists under the same name.
 */
export const ownSession: LockChecker = {
  invariant: "9: a holder acts only on a node that its current session owns",
  check({ grants, looks, acts, slackMs }) {
    const given = new Map<string, Grant>();
    for (const grant of grants) given.set(`${grant.lock} ${grant.fence}`, grant);
    for (const { lock, process, fence, atMs } of [...looks, ...acts]) {
      if (fence === null) continue;
      const grant = given.get(`${lock} ${fence}`);
      if (!grant) return { what: `${lock}: ${process} acts under fence ${fence}, which was never given`, atMs };
      if (grant.process !== process)
        return { what: `${lock}: ${process} acts under fence ${fence}, which is ${grant.process}'s`, atMs };
      if (grant.endedMs !== null && grant.endedMs + slackMs < atMs)
        return {
          what:
            `${lock}: ${process} acts under fence ${fence} by session ${grant.session}, ` +
            `${(atMs - grant.endedMs).toFixed(1)} ms after that was over`,
          atMs,
        };
    }
    return undefined;
  },
};
