/** The process under test: a scheduler node with default settings that serves HTTP, and executes no runs itself. */
import { carillon } from "carillon";
import { answerAsSubject } from "../measure/subject.ts";

export interface Order {
  url: string;
  schema: string;
  port: number;
}

const { url, schema, port } = JSON.parse(process.argv[2] ?? "{}") as Order;
const tower = carillon({ store: url, schema, worker: false, listen: `127.0.0.1:${port}`, handleSignals: false });
const tell = answerAsSubject(() => tower.stop());
await tower.start();
tell({ kind: "started" });
