import type { Run } from "carillon";

/** Its default export is the handler. It looks at no signal: its thread is ended with the task's timeout. */
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
