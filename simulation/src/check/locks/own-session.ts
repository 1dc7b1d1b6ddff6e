import type { Grant, LockChecker } from "../../lock-history.ts";

/**
 * Checks that a process which reports that it owns a node was granted this node since its start, and that the node's session has not ended.
 * A node of an earlier session may still exist under the same name, but has no holder.
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
