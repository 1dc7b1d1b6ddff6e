import { CarillonError } from "../../src/base/errors.ts";

/** Returns the CarillonError that `work` throws. @throws any other error of `work`, and an error when it throws nothing */
export function caught(work: () => unknown): CarillonError {
  try {
    work();
  } catch (error) {
    if (error instanceof CarillonError) return error;
    throw error;
  }
  throw new Error("nothing was thrown");
}
