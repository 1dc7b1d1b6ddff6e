import type { Store } from "../../../scheduler/src/store/store.ts";
import type { RunSeen, Seen, TaskSeen } from "./seen.ts";

const most = 10_000;

/** Reads everything that a user can read about these tasks; times are ms from `beganMs`. @param endMs reads slots up to here, epoch ms */
export async function readAll(
  store: Store,
  names: readonly string[],
  beganMs: number,
  endMs: number,
): Promise<Pick<Seen, "runs"> & { tasks: Omit<TaskSeen, "plans">[] }> {
  const since = <T extends number | null>(ms: T) => (ms === null ? null : ms - beganMs) as T;
  const runs: RunSeen[] = [];
  const tasks: Omit<TaskSeen, "plans">[] = [];
  for (const [of, name] of names.entries()) {
    const { taskId } = await store.tasks.byName(name);
    for (const run of await store.runs.list({ task: name, limit: most })) {
      // Only failed runs are dead letters, and only manual runs are made from dead letters; other runs need no query.
      const mayLink = run.state === "failed" || run.source === "manual";
      const { letter, redrives } = mayLink
        ? await store.deadLetters.linksOf(run.runId)
        : { letter: null, redrives: null };
      runs.push({
        ...run,
        of,
        slotMs: since(run.slotMs),
        dueMs: since(run.dueMs),
        createdMs: since(run.createdMs),
        claimedMs: since(run.claimedMs),
        startedMs: since(run.startedMs),
        endedMs: since(run.endedMs),
        letter: letter && { ...letter, endedMs: since(letter.endedMs) },
        redrives,
      });
    }
    const counters = (await store.tasks.counters([taskId])).get(taskId);
    const { slots, ranges } = await store.history.slots(taskId, beganMs, endMs, most);
    tasks.push({
      counters: counters ?? { succeeded: 0, failed: 0, cancelled: 0, skipped: 0, missed: 0, retried: 0 },
      slots: slots.map((slot) => ({
        ...slot,
        slotMs: since(slot.slotMs),
        acceptedMs: since(slot.acceptedMs),
        nominalMs: slot.nominalMs?.map(since) ?? null,
      })),
      ranges: ranges.map((range) => ({ ...range, fromMs: since(range.fromMs), toMs: since(range.toMs) })),
    });
  }
  return { runs: runs.sort((a, b) => a.runId - b.runId), tasks };
}
