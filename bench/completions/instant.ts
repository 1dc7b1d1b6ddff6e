import pg from "pg";
import { channelOf } from "./order.ts";

/**
 * Listens for the notification that names the instant (epoch ms) at which all runs end, on a connection of its own. `come` resolves at
 * that instant.
 */
export async function theInstant(
  url: string,
  schema: string,
): Promise<{ come: Promise<void>; close(): Promise<void> }> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const come = new Promise<void>((resolve) => {
    client.on("notification", ({ payload }) => {
      setTimeout(resolve, Math.max(0, Number(payload) - Date.now()));
    });
  });
  await client.query(`listen "${channelOf(schema)}"`);
  return { come, close: () => client.end() };
}
