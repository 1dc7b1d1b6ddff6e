import type { Run } from "carillon";

/** The handler must be the file's default export. It does not check `run.signal`: at the task's timeout its thread is terminated. */
export default (run: Run, { below }: { below: number }): number => {
  let count = 0;
  for (let n = 2; n < below; n++) {
    let divisor = 2;
    while (n % divisor !== 0) divisor++;
    if (divisor === n) count++;
    if (n % 50_000 === 0) run.progress({ n, count });
  }
  return count;
};
