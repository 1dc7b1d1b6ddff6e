import { useAnswer } from "../api/answers.ts";
import { isOver } from "./states.ts";

/** Reads a run, every `everyMs` until it is over. @param run its number; 0 disables the read */
export function useRun(run: number, everyMs: number) {
  const enabled = run > 0;
  const { data } = useAnswer("getRun", { run }, { enabled });
  const isLive = data !== undefined && !isOver(data);
  return useAnswer("getRun", { run }, { enabled, ...(isLive ? { everyMs } : {}) });
}
