import { useAnswer } from "../api/answers.ts";
import type { Operation } from "./operations.tsx";

export const isUnderWay = ({ state }: Operation): boolean => state === "running" || state === "stopping";

/** Reads an operation every `everyMs` until it has ended. @param operation its number; 0 disables the read */
export function useOperation(operation: number, everyMs: number) {
  const enabled = operation > 0;
  const { data } = useAnswer("getOperation", { operation }, { enabled });
  const isOver = data !== undefined && !isUnderWay(data);
  return useAnswer("getOperation", { operation }, { enabled, ...(isOver ? {} : { everyMs }) });
}
