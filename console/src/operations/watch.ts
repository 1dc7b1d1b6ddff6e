import { useAnswer } from "../api/answers.ts";
import type { Operation } from "./operations.tsx";

export const isUnderWay = ({ state }: Operation): boolean => state === "running" || state === "stopping";

/** Asked for again and again until it is over: its steps are told by no event. @param operation 0: none */
export function useOperation(operation: number, everyMs: number) {
  const enabled = operation > 0;
  const { data } = useAnswer("getOperation", { operation }, { enabled });
  const isOver = data !== undefined && !isUnderWay(data);
  return useAnswer("getOperation", { operation }, { enabled, ...(isOver ? {} : { everyMs }) });
}
