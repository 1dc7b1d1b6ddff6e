import type { TaskOptions } from "../task.ts";

/** Each part of a task, and what it takes where that is not a text, a number or a duration; what begins with { is JSON anywhere. */
const parts: Record<keyof TaskOptions | "zone", string> = {
  description: "",
  group: "",
  schedule: "a cron, every 5m, at TIME, manual",
  zone: "",
  slotPayload: "JSON",
  payloadSchema: "JSON",
  priority: "",
  timeout: "or none",
  retry: "",
  overlap: "",
  misfire: "",
  onWorkerLost: "",
  grace: "",
  history: "",
  command: "JSON",
  http: "JSON",
  calendar: "JSON, or none",
  blackout: "JSON, or none",
  route: "random, sticky and the like, or JSON",
  labels: "JSON",
  limit: "JSON",
  rate: "JSON, or none",
  after: "TASK,TASK…, JSON with on, or none",
};

/** What `--set PART=VALUE` takes. */
export const partsToSet = Object.entries(parts)
  .map(([part, takes]) => (takes === "" ? part : `${part} (${takes})`))
  .join(", ");
