/** The handlers of handler.ts, as a sandboxed processor of BullMQ. */
import { compute } from "./handler.ts";

export default async ({ data }: { data: { ms?: number } }) => {
  if (data.ms !== undefined) compute(data.ms);
};
