import type { TaskDefinition } from "../../../scheduler/src/task/task.ts";
import type { Checker } from "../history.ts";

const longestHandlerMs = 36_000;
const graceMs = 10_000;
/**
 * The interval in ms at which the leader looks for runs that were set aside and that a change of their task has released; see
 * engine/janitor.ts.
 */
const takenUpMs = 60_000;
/** The longest time in ms, without faults, from a claim to its start and from an end to its verdict. */
const stuckMs = 20_000;

/** Checks that some time after the end of all faults there is one leader, every process is a member, and no run or slot is stuck. */
export const recovered: Checker = {
  invariant: "16: it recovers",
  check({ dump, nodes, endStoreMs, clockErrorMs, executions, endMs }) {
    const alive = dump.session.filter(({ ended_ms }) => ended_ms === null);
    const names = new Set(alive.map(({ node }) => node));
    const missing = nodes.filter((name) => !names.has(name));
    if (missing.length > 0) return { what: `${missing.join(", ")} did not come back` };
    const leader = dump.leadership[0]?.session_id;
    if (!alive.some(({ id }) => id === leader)) return { what: `nobody leads: the leader's session is ${leader}` };
    const living = new Set(alive.map(({ id }) => id));
    const going = dump.task.filter((row) => row.paused_ms === null && row.deleted_ms === null);
    const isGoing = new Set(going.map(({ id }) => id));
    const changedMs = new Map(going.map((row) => [row.id, row.changed_ms as number]));
    const isRated = new Set(
      dump.task.filter(({ definition }) => (definition as TaskDefinition).rate).map(({ id }) => id),
    );
    for (const row of dump.run) {
      const run = row.id as number;
      const lateMs = endStoreMs - (row.due_ms as number) - clockErrorMs;
      if (row.state === 3 && !living.has(row.session_id))
        return { what: `it is claimed by session ${row.session_id}, which is over`, run };
      if (row.state === 3) {
        const execution = executions.find(({ fence }) => fence === row.fence);
        const idleMs =
          execution?.endMs != null
            ? endMs - execution.endMs
            : execution
              ? 0
              : Math.min(lateMs, endStoreMs - (row.claimed_ms as number));
        if (idleMs > stuckMs)
          return { what: `it is claimed, and nobody has been at work on it for ${Math.round(idleMs)} ms`, run };
      }
      if (
        row.state === 1 &&
        endStoreMs - (changedMs.get(row.task_id) ?? Number.POSITIVE_INFINITY) > takenUpMs + graceMs
      )
        return { what: "it is paused, and its task has not been for longer than the leader takes to find it", run };
      if (row.state === 2 && lateMs > longestHandlerMs + graceMs)
        return { what: `it has been due for ${Math.round(lateMs)} ms`, run };
      if (
        row.state === 0 &&
        isGoing.has(row.task_id) &&
        !isRated.has(row.task_id) &&
        lateMs > graceMs &&
        !dump.run.some((other) => other.task_id === row.task_id && [2, 3].includes(other.state as number))
      )
        return { what: `it has been held for ${Math.round(lateMs)} ms, and nothing of its task is under way`, run };
    }
    for (const { task_id, next_slot_ms, paused } of dump.plan) {
      if (next_slot_ms === null || paused) continue;
      const lateMs = endStoreMs - (next_slot_ms as number) - clockErrorMs;
      if (lateMs > 0)
        return {
          what: `task ${task_id}'s slot ${next_slot_ms} was not planned, ${Math.round(lateMs)} ms after its time`,
        };
    }
    return undefined;
  },
};
