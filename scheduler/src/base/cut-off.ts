import { type Context, createContext, Script } from "node:vm";

const script = new Script("work()");
let room: Context | undefined;

/** Thrown when the work took longer than its limit. */
export class CutOff extends Error {
  override readonly name = "CutOff";
}

/**
 * Runs a library's code on text from outside, and stops the code after `ms`. The code blocks this process and checks no clock,
 * so V8 interrupts it. A thread could be terminated too, but would have to be started and given all data for each call. Only for
 * code without side effects, because the code may stop anywhere and skips every `finally`.
 * @throws CutOff after the limit; also what `work` throws
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
