import type { Checker } from "../history.ts";

/**
 * Checks that each save that changed a definition created one version, and that a save that was refused or changed nothing
 * created none.
 */
export const audited: Checker = {
  invariant: "18: each change has one entry",
  check({ operations, dump }) {
    for (const { id, kind, outcome, answer, task } of operations) {
      if (kind !== "save") continue;
      const entries = dump.task_version.filter(({ reason }) => reason === id).length;
      const [least, most] = outcome === "unknown" ? [0, 1] : outcome === "ok" && answer === "true" ? [1, 1] : [0, 0];
      if (entries < least || entries > most)
        return { what: `${id} (${outcome}, changed: ${answer}) has ${entries} entries`, task };
    }
    return undefined;
  },
};
