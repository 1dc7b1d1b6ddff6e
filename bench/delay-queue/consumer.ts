/** Carillon's delay queue in a process of its own; each handler only records its start. */
import { connect, DelayQueue } from "@carillon/zookeeper";
import { StartNotes } from "../measure/starts.ts";
import { answerAsSubject } from "../measure/subject.ts";
import { type Order, readItem } from "./order.ts";

const { url, path, lockPath, concurrency } = JSON.parse(process.argv[2] ?? "{}") as Order;
const zk = await connect(url);
const queue = new DelayQueue(zk, path, { lockPath });
const tell = answerAsSubject(async () => {
  await queue.close();
  await zk.close();
  notes.flush();
});
const notes = new StartNotes((batch) => tell({ kind: "starts", batch }));
await queue.consume(
  ({ data }) => {
    const { number, dueMs } = readItem(data.toString("latin1"));
    notes.note(number, dueMs);
  },
  { concurrency, onTrouble: console.error, onFailure: console.error },
);
tell({ kind: "started" });
