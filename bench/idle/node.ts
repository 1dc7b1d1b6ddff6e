/** The process under test: a node with default settings, and one task that is not due. */
import { carillon, cron } from "carillon";
import { answerAsSubject } from "../measure/subject.ts";

export interface Order {
  url: string;
  schema: string;
  coordination?: string | undefined;
}

const { url, schema, coordination } = JSON.parse(process.argv[2] ?? "{}") as Order;
const tower = carillon({ store: url, schema, handleSignals: false, ...(coordination ? { coordination } : {}) });
const tell = answerAsSubject(() => tower.stop());
tower.task("yearly", { schedule: cron("0 0 1 1 *") }, () => undefined);
await tower.start();
tell({ kind: "started" });
