/** The process under test: a node with default settings that plans and serves the HTTP API, and executes no runs. */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { carillon } from "carillon";
import { answerAsSubject } from "../measure/subject.ts";

export interface Order {
  url: string;
  schema: string;
  port: number;
}

const { url, schema, port } = JSON.parse(process.argv[2] ?? "{}") as Order;
const loop = monitorEventLoopDelay({ resolution: 1 });
loop.enable();
const tower = carillon({ store: url, schema, worker: false, listen: `127.0.0.1:${port}`, handleSignals: false });
const tell = answerAsSubject(() => tower.stop(), loop);
await tower.start();
tell({ kind: "started" });
