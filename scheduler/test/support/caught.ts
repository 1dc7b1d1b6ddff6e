import { CarillonError } from "../../src/base/errors.ts";

/** The CarillonError that `work` throws. @throws whatever else it throws, and when it throws nothing */
export function caught(work: () => unknown): CarillonError {
  try {
    work();
  } catch (error) {
    if (error instanceof CarillonError) return error;
    throw error;
  }
  throw new Error("nothing was thrown");
}
