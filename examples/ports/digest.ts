/** The mails of a shop on Carillon: digest.agenda.mjs, ported. */
import { carillon, cron } from "carillon";

interface Given {
  send(to: string, what: "digest" | "reminder"): Promise<void>;
  sweep(): Promise<void>;
  tell(what: string): void;
}

export async function open(store: string, { send, sweep, tell }: Given) {
  const tower = carillon({ store, concurrency: 20 });
  const retry = { attempts: 4, delay: "1m", backoff: "fixed" } as const;

  const digest = tower.task("digest", { retry, overlap: { allow: 2 }, timeout: "10m" }, async (run, to: string) => {
    await send(to, "digest");
    run.progress(50);
  });
  const remind = tower.task("remind", { retry, priority: 9 }, (_run, to: string) => send(to, "reminder"));
  const schedule = cron("*/15 * * * *", { zone: "Europe/Berlin" });
  const sweeping = tower.task("sweep", { schedule, overlap: "skip" }, sweep);
  tower.onRun(({ kind, task, error }) => {
    if (kind !== "started") tell(error === null ? `${task} succeeded` : `${task} failed: ${error}`);
  });
  await tower.start();

  return {
    subscribe: (to: string, hour: number, zone: string) =>
      digest.schedule(to, cron(`0 ${hour} * * *`, { zone }), { payload: to }),
    unsubscribe: (to: string) => digest.unschedule(to),
    remind: (to: string, at: Date) => remind.enqueue(to, { at }),
    now: (to: string) => digest.run(to),
    async *subscribers() {
      for await (const { payload } of digest.schedules()) yield payload as string;
    },
    pause: () => sweeping.pause(),
    close: () => tower.stop(),
  };
}
