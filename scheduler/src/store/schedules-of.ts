import type { TaskRecord } from "../task/task-record.ts";
import type { TaskStore } from "../task/task-store.ts";

const readTogether = 500;

/** Yields the schedules of a task, ordered by name. The next batch is read from the store when the previous one has been consumed. */
export async function* everyScheduleOf(
  tasks: Pick<TaskStore, "schedulesOf">,
  of: string,
): AsyncGenerator<TaskRecord, void, undefined> {
  for (let after = ""; ; ) {
    const records = await tasks.schedulesOf(of, after, readTogether);
    yield* records;
    const last = records.at(-1);
    if (!last || records.length < readTogether) return;
    after = last.name;
  }
}
