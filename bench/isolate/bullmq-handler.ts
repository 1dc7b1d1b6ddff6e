/** The same handler as BullMQ's sandboxed processor. */
import { compute } from "./handler.ts";

export default async ({ data }: { data: { ms?: number } }) => {
  if (data.ms !== undefined) compute(data.ms);
};
