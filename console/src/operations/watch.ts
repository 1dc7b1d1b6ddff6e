import { useAnswer } from "../api/answers.ts";
import type { Operation } from "./operations.tsx";

export const isUnderWay = ({ state }: Operation): boolean => state === "running" || state === "stopping";

/** Fetches the operation repeatedly until it is over: no event reports its steps. @param operation 0: none */
export function useOperation(operation: number, everyMs: number) {
  const enabled = operation > 0;
  const { data } = useAnswer("getOperation", { operation }, { enabled });
  const isOver = data !== undefined && !isUnderWay(data);
  return useAnswer("getOperation", { operation }, { enabled, ...(isOver ? {} : { everyMs }) });
}
