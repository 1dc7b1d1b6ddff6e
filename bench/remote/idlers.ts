/** Thousands of workers in one process, which use the HTTP protocol directly: each has a session, a connection and a long poll. */
import { Agent, request } from "node:http";
import { answerAsSubject } from "../measure/subject.ts";

export interface IdlersOrder {
  server: string;
  key: string;
  workers: number;
}

const { server, key, workers } = JSON.parse(process.argv[2] ?? "{}") as IdlersOrder;
const agent = new Agent({ keepAlive: true });
const waitMs = 25_000;
let stopping = false;

function poll(body: object): Promise<{ session: number; runs: unknown[] }> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const call = request(`${server}/v1/worker/poll`, { method: "POST", agent, headers }, async (response) => {
      let text = "";
      for await (const part of response) text += part;
      if (response.statusCode === 200) resolve(JSON.parse(text));
      else reject(new Error(`${response.statusCode}: ${text}`));
    });
    call.on("error", reject);
    call.end(JSON.stringify(body));
  });
}

async function idle(session: number): Promise<void> {
  while (!stopping) {
    const { runs } = await poll({ session, want: 10, aheadMs: 1_000, waitMs });
    if (runs.length > 0) throw new Error("there was work, and they should be idle");
  }
}

const fail = (error: unknown) => {
  if (stopping) return; // `stop` closed the connections.
  console.error(error);
  process.exit(1);
};
const tell = answerAsSubject(async () => {
  stopping = true;
  agent.destroy();
});
for (let i = 0; i < workers; i++) {
  const join = { name: `idle-${i}`, tasks: ["nothing"], concurrency: 10 };
  const { session } = await poll({ join }).catch((error) => {
    fail(error);
    throw error;
  });
  idle(session).catch(fail);
}
tell({ kind: "started" });
