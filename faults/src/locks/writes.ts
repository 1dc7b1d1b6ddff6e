import type { Violation } from "../../../simulation/src/history.ts";

/** A write that the guarded place took, in the order in which it did. */
export interface AcceptedWrite {
  readonly seq: number;
  readonly fence: number;
  readonly writer: string;
}

/** Nothing is taken from who had the lock before, once somebody with a later fence has written. */
export function staleWrite(writes: readonly AcceptedWrite[]): Violation | undefined {
  let highest = { fence: Number.NEGATIVE_INFINITY, writer: "" };
  for (const write of writes.toSorted((a, b) => a.seq - b.seq)) {
    if (write.fence < highest.fence)
      return {
        invariant: "8: no write with a fence below the highest accepted is applied",
        what: `${write.writer} wrote under fence ${write.fence}, after ${highest.writer} under fence ${highest.fence}`,
      };
    highest = write;
  }
  return undefined;
}
