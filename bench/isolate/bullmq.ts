/** A BullMQ worker under test: a plain processor, and a sandboxed processor that runs each job in a process or thread. */
import { peer } from "../contest/contender.ts";
import { StartNotes } from "../measure/starts.ts";
import { answerAsSubject } from "../measure/subject.ts";
import { computingName, kinds, type PeerOrder } from "./order.ts";

type Listener = (...given: unknown[]) => void;
interface BullMQ {
  Queue: new (
    name: string,
    options: object,
  ) => { add(name: string, data: object, options: object): Promise<unknown>; close(): Promise<unknown> };
  Worker: new (
    name: string,
    processor: URL | ((job: { data: { id: number; dueMs: number } }) => Promise<unknown>),
    options: object,
  ) => {
    on(event: "active" | "completed" | "error", listener: Listener): void;
    waitUntilReady(): Promise<unknown>;
    close(): Promise<unknown>;
  };
}

const order = JSON.parse(process.argv[2] ?? "{}") as PeerOrder;
const { Queue, Worker } = (await peer("bullmq")) as BullMQ;
const { hostname: host, port } = new URL(order.redis);
const connection = { host, port: Number(port), maxRetriesPerRequest: null };
const file = new URL("./bullmq-handler.js", import.meta.url);
const opened: { close(): Promise<unknown> }[] = [];
const tell = answerAsSubject(async () => {
  for (const one of opened.reverse()) await one.close();
  notes.flush();
});
const notes = new StartNotes((batch) => tell({ kind: "starts", batch }));
const concurrency = 300;

const work = async (name: string, processor: ConstructorParameters<BullMQ["Worker"]>[1], options: object) => {
  const worker = new Worker(name, processor, { connection, ...options });
  worker.on("error", (error) => console.error(error));
  await worker.waitUntilReady();
  opened.push(worker);
  return worker;
};
const plain = async ({ data }: { data: { id: number; dueMs: number } }) => {
  if (data.dueMs !== undefined) notes.note(data.id, data.dueMs);
};

async function noteDurations(): Promise<void> {
  const queues = await Promise.all(
    kinds.map(async (kind) => {
      const name = `${order.queue}-${kind}`;
      const worker = await work(name, kind === "plain" ? plain : file, {
        concurrency: 1,
        useWorkerThreads: kind === "thread",
      });
      const queue = new Queue(name, { connection });
      opened.push(queue);
      let beganMono = 0;
      let ended: (ms: number) => void = () => undefined;
      worker.on("active", () => {
        beganMono = performance.now();
      });
      worker.on("completed", () => ended(performance.now() - beganMono));
      return async () => {
        const took = new Promise<number>((resolve) => {
          ended = resolve;
        });
        await queue.add("no-op", {}, { removeOnComplete: true });
        return took;
      };
    }),
  );
  tell({ kind: "started" });
  for (let round = 0; round < order.rounds; round++)
    for (const [place, run] of queues.entries()) notes.note(place, await run());
}

if (order.part === "overhead") await noteDurations();
else {
  await work(order.queue, plain, { concurrency });
  await work(computingName(order.queue), file, { concurrency: 1, useWorkerThreads: order.useWorkerThreads });
  tell({ kind: "started" });
}
