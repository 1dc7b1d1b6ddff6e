import type { Checker } from "../history.ts";

const outcomes = ["succeeded", "failed", "cancelled", "skipped"] as const;

/** Checks that a task's counters equal the numbers of its rows. */
export const counters: Checker = {
  invariant: "15: counters equal the rows",
  check({ dump }) {
    for (const { id, name } of dump.task) {
      const own = dump.run_history.filter(({ task_id }) => task_id === id);
      const runs = new Set(
        [...own, ...dump.run.filter(({ task_id }) => task_id === id)].map((row) => row.id as number),
      );
      const ranges = dump.slot_range.filter(({ task_id }) => task_id === id);
      if (ranges.some(({ slots }) => slots === null)) continue; // the range is too large to be counted
      const inRanges = (outcome: number) =>
        ranges.filter((row) => row.outcome === outcome).reduce((sum, row) => sum + (row.slots as number), 0);
      const unrun = dump.slot.filter((row) => row.task_id === id && row.outcome === 2 && row.run_id === null).length;
      // A run that a misfire policy gave up has ended as skipped, but its slot counts as missed.
      const givenUp = own.filter(({ why }) => String(why).startsWith("misfire: ")).length;
      const counted: Record<string, number> = {
        ...Object.fromEntries(outcomes.map((what, i) => [what, own.filter(({ outcome }) => outcome === i).length])),
        missed: inRanges(3) + givenUp,
        retried: dump.attempt.filter(({ run_id }) => runs.has(run_id as number)).length,
      };
      counted.skipped = (counted.skipped ?? 0) - givenUp + inRanges(2) + unrun;
      const told = dump.tally.find(({ task_id }) => task_id === id) ?? {};
      for (const [what, count] of Object.entries(counted))
        if ((told[what] ?? 0) !== count)
          return { what: `${name} counts ${told[what] ?? 0} ${what}, and there are ${count}`, task: name as string };
    }
    return undefined;
  },
};
