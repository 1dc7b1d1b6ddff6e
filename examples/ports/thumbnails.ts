/** The thumbnail service on Carillon: thumbnails.bullmq.mjs, ported. */
import { carillon, cron } from "carillon";

export interface Image {
  image: string;
  width: number;
}
interface Given {
  resize(image: string, width: number): Promise<number>;
  clean(): Promise<number>;
  notify(task: string, error: string): void;
}

export async function open(store: string, { resize, clean, notify }: Given) {
  const tower = carillon({ store });
  const retry = { attempts: 5, delay: "1s" } as const;
  const limits = { rate: { limit: 100, per: "1m" }, limit: { perWorker: 10 } } as const;

  const thumbnail = tower.task("resize", { retry, ...limits }, async (run, { image, width }: Image) => {
    run.log.info("resizing", { image });
    run.progress({ image });
    return { image, bytes: await resize(image, width) };
  });
  const album = tower.task("album", {}, (run, images: Image[]) => {
    const children = images.map((payload) => ({ task: "resize", payload }));
    return run.fanOut(children, { join: "album-total" });
  });
  tower.task("album-total", {}, async (run) => {
    const parts = (await run.inputs()).map(({ result }) => result as { bytes: number });
    return { images: parts.length, bytes: parts.reduce((sum, { bytes }) => sum + bytes, 0) };
  });
  const schedule = cron("0 3 * * *", { zone: "Europe/Berlin" });
  tower.task("clean", { retry, schedule }, async () => ({ removed: await clean() }));
  tower.onRun(({ outcome, task, error }) => outcome === "failed" && notify(task, error ?? ""));
  await tower.start();

  return {
    async thumbnail(image: string, width: number) {
      const run = await thumbnail.enqueue({ image, width }, { key: `${image}-${width}`, priority: 9 });
      return run.result({ timeout: "30s" });
    },
    tonight: (image: string, width: number, at: Date) => thumbnail.enqueue({ image, width }, { at }),
    all: (images: Image[]) => thumbnail.enqueueMany(images),
    album: (images: Image[]) => album.enqueue(images),
    failed: () => tower.runs.list({ states: ["failed"] }),
    retry: (id: number) => tower.runs.retry(id),
    close: () => tower.stop(),
  };
}
