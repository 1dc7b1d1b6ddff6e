import { type Context, createContext, Script } from "node:vm";

const script = new Script("work()");
let room: Context | undefined;

/** It took longer than it may. */
export class CutOff extends Error {
  override readonly name = "CutOff";
}

/**
 * Work that a library does on what somebody else wrote, ended from outside when it takes too long: nothing else in this process goes
 * on meanwhile, and a loop in a library looks at no clock. A thread of its own could be ended too, but would have to be started,
 * and told everything, each time. Only for work that changes nothing: it may end anywhere, and past every `finally`.
 * @throws CutOff, and what `work` throws
 */
export function cutOffAfter<T>(ms: number, work: () => T): T {
  let done: { value: T } | undefined;
  let failure: { error: unknown } | undefined;
  room ??= createContext(Object.create(null));
  room.work = () => {
    try {
      done = { value: work() };
    } catch (error) {
      failure = { error };
    }
  };
  try {
    script.runInContext(room, { timeout: ms });
  } catch (cause) {
    if ((cause as { code?: string }).code !== "ERR_SCRIPT_EXECUTION_TIMEOUT") throw cause;
    throw new CutOff(`it took longer than ${ms} ms`, { cause });
  } finally {
    room.work = undefined;
  }
  if (failure) throw failure.error;
  return (done as { value: T }).value;
}
