/** The thumbnail service on BullMQ 5 and Redis: the original of thumbnails.ts. */
import { FlowProducer, Queue, QueueEvents, Worker } from "bullmq";

const name = "thumbnails";
const limiter = { max: 100, duration: 60_000 };

export async function open(redis, { resize, clean, notify }) {
  const connection = { url: redis, maxRetriesPerRequest: null };
  const backoff = { type: "exponential", delay: 1_000 };
  const queue = new Queue(name, { connection, defaultJobOptions: { attempts: 5, backoff, removeOnComplete: 1_000 } });
  const events = new QueueEvents(name, { connection });
  const flows = new FlowProducer({ connection });
  await events.waitUntilReady();

  const handlers = {
    async resize(job) {
      const { image, width } = job.data;
      await job.log(`resizing ${image}`);
      await job.updateProgress({ image });
      return { image, bytes: await resize(image, width) };
    },
    async album(job) {
      const parts = Object.values(await job.getChildrenValues());
      return { images: parts.length, bytes: parts.reduce((sum, { bytes }) => sum + bytes, 0) };
    },
    clean: async () => ({ removed: await clean() }),
  };
  const worker = new Worker(name, (job) => handlers[job.name](job), { connection, concurrency: 10, limiter });
  worker.on("failed", (job, error) => job?.attemptsMade === job?.opts.attempts && notify(job?.name, error.message));
  worker.on("error", (error) => console.error(error));
  await queue.upsertJobScheduler("clean", { pattern: "0 3 * * *", tz: "Europe/Berlin" }, { name: "clean" });

  return {
    async thumbnail(image, width) {
      const job = await queue.add("resize", { image, width }, { jobId: `${image}-${width}`, priority: 1 });
      return job.waitUntilFinished(events, 30_000);
    },
    tonight: (image, width, at) => queue.add("resize", { image, width }, { delay: at.getTime() - Date.now() }),
    all: (images) => queue.addBulk(images.map((data) => ({ name: "resize", data }))),
    album: (images) => {
      const children = images.map((data) => ({ name: "resize", queueName: name, data }));
      return flows.add({ name: "album", queueName: name, children });
    },
    failed: () => queue.getFailed(0, 49),
    async retry(id) {
      const job = await queue.getJob(id);
      await job.retry();
    },
    async close() {
      await worker.close();
      await Promise.all([events.close(), flows.close(), queue.close()]);
    },
  };
}
