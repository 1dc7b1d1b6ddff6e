/** The mails of a shop on Agenda 5 and MongoDB, with a scheduled job of node-cron: the original of digest.ts. */
import Agenda from "agenda";
import cron from "node-cron";

export async function open(mongo, { send, sweep, tell }) {
  const agenda = new Agenda({ db: { address: mongo }, maxConcurrency: 20, defaultConcurrency: 5 });

  agenda.define("digest", { concurrency: 2, lockLifetime: 600_000 }, async (job) => {
    await send(job.attrs.data.to, "digest");
    await job.touch(50);
  });
  agenda.define("remind", { priority: "high" }, async (job) => send(job.attrs.data.to, "reminder"));
  agenda.on("success", (job) => tell(`${job.attrs.name} succeeded`));
  agenda.on("fail", async (error, job) => {
    tell(`${job.attrs.name} failed: ${error.message}`);
    if (job.attrs.failCount >= 3) return;
    job.attrs.nextRunAt = new Date(Date.now() + 60_000);
    await job.save();
  });
  await agenda.start();
  const sweeping = cron.schedule("*/15 * * * *", () => sweep(), { timezone: "Europe/Berlin", noOverlap: true });

  return {
    async subscribe(to, hour, zone) {
      const job = agenda.create("digest", { to });
      job.unique({ "data.to": to });
      job.repeatEvery(`0 ${hour} * * *`, { timezone: zone, skipImmediate: true });
      await job.save();
    },
    unsubscribe: (to) => agenda.cancel({ name: "digest", "data.to": to }),
    remind: (to, at) => agenda.schedule(at, "remind", { to }),
    now: (to) => agenda.now("digest", { to }),
    subscribers: async () => (await agenda.jobs({ name: "digest", type: "single" })).map(({ attrs }) => attrs.data.to),
    pause: () => sweeping.stop(),
    async close() {
      sweeping.stop();
      await agenda.stop();
    },
  };
}
