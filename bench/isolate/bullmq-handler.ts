/** The workload of handler.ts as a sandboxed processor of BullMQ: computes for `ms`, or does nothing without `ms`. */
import { compute } from "./handler.ts";

export default async ({ data }: { data: { ms?: number } }) => {
  if (data.ms !== undefined) compute(data.ms);
};
