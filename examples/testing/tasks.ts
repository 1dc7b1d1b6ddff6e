/** A program's task definitions, in a function so that tests can define them on their own Carillon instance. */
import { type Carillon, cron } from "carillon";

export const monthEnd = cron("0 0 0 L * ?", { zone: "Europe/Berlin" });

export function defineTasks(tower: Carillon, ledger: { settle(month: string): Promise<number> }): void {
  tower.task(
    "settle-accounts",
    { schedule: monthEnd, overlap: "queue", retry: { attempts: 3, delay: "10m", jitter: 0 } },
    async (run) => {
      const month = (run.slot ?? run.due).toISOString().slice(0, 7);
      run.log.info("settling", { month, attempt: run.attempt });
      return { month, accounts: await ledger.settle(month) };
    },
  );
}
