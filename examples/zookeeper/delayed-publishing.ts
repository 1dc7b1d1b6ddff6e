/**
 * Articles are published at a set time. Editors put them into a delay queue; two publishers share the queue, and one of them publishes each
 * article. The queue survives the end of both publishers. One article fails once, because the site is down, and is retried; another can
 * never be published, and is moved aside for a person to examine.
 *
 *   node examples/dist/zookeeper/delayed-publishing.js HOST:PORT,HOST:PORT,… [PATH]
 */
import { connect, DelayQueue, type QueueItem } from "@carillon/zookeeper";

interface Article {
  title: string;
  trouble?: "once" | "always";
}

const articles: (Article & { inMs: number })[] = [
  { title: "Evening edition", inMs: 900 },
  { title: "Morning edition", inMs: 300 },
  { title: "Noon edition", inMs: 600, trouble: "once" },
  { title: "Unfinished draft", inMs: 450, trouble: "always" },
  { title: "Breaking news", inMs: 0 },
];

const [hosts = "127.0.0.1:2181", path = "/delayed-publishing"] = process.argv.slice(2);
const clients = await Promise.all([connect(hosts), connect(hosts), connect(hosts)]);
const [desk, ...publishers] = clients.map((zk) => new DelayQueue(zk, path, { lockPath: `${path}-locks` }));

let open = articles.length;
let finish: () => void = () => undefined;
const finished = new Promise<void>((resolve) => {
  finish = resolve;
});
const settled = () => {
  if (--open === 0) finish();
};

async function publish(publisher: number, item: QueueItem): Promise<void> {
  const article = JSON.parse(item.data.toString()) as Article;
  // A real handler would pass item.signal to fetch, and item.fence to a store that rejects older fences.
  if (article.trouble === "always") throw new Error("it has no text");
  if (article.trouble === "once" && item.attempt === 1) throw new Error("the site is down");
  const lateMs = Date.now() - (item.dueMs ?? 0);
  const how = item.attempt === 1 ? (lateMs < 0 ? "early" : "on time") : `at attempt ${item.attempt}`;
  console.log(`published: ${article.title}, ${how}, by publisher ${publisher}`);
  settled();
}

for (const [index, queue] of publishers.entries()) {
  await queue.consume((item) => publish(index + 1, item), {
    attempts: 3,
    backoffMs: (failures) => 50 * 2 ** failures,
    onFailure: ({ error, attempt, retryAtMs }) => {
      if (retryAtMs !== undefined) return console.log(`attempt ${attempt} failed: ${error}`);
      console.log(`laid aside after attempt ${attempt}: ${error}`);
      settled();
    },
  });
}

const now = Date.now();
for (const { inMs, ...article } of articles) await desk?.put(JSON.stringify(article), { at: now + inMs });
await finished;
await Promise.all(publishers.map((queue) => queue.close()));

const [zk] = clients;
const aside = await zk?.children(`${path}-poison`);
console.log(`${await desk?.size()} articles wait, ${aside?.names.length} lies aside`);
await Promise.all(clients.map((client) => client.close()));
