import { pause } from "../clock.ts";
import { messageOf } from "../errors.ts";
import type { Signal, SignalStore } from "../store.ts";
import { type Database, quoteIdentifier } from "./database.ts";
import { channelOf } from "./sessions.ts";

const reconnectPauseMs = 500;

/** `pg_notify` as a part of a larger statement; `text` is an SQL expression. */
export function notifySql(schema: string, text: string): string {
  return `pg_notify('${channelOf(schema)}', ${text})`;
}

/** LISTEN on a connection of its own. Each new connection begins with a `resync`, since the gap before it was deaf. */
export function signalStore(database: Database): SignalStore {
  const channel = quoteIdentifier(channelOf(database.schema).replaceAll("''", "'"));
  return {
    async listen(listener, signal) {
      while (!signal.aborted) {
        try {
          await listenOnce(listener, signal);
        } catch (error) {
          // The pool's own queries tell of an outage; a deaf listener only means slower wake-ups until it is back.
          database.log.debug({ error: messageOf(error) }, "signals are not heard; connecting again");
        }
        await pause(database.clock, reconnectPauseMs, signal);
      }
    },
  };

  async function listenOnce(listener: (signal: Signal) => void, signal: AbortSignal): Promise<void> {
    const client = await database.connect();
    const stop = () => void client.end();
    signal.addEventListener("abort", stop, { once: true });
    try {
      await new Promise<void>((resolve, reject) => {
        client.on("end", resolve);
        client.on("error", reject);
        client.on("notification", ({ payload }) => {
          const heard = parse(payload ?? "");
          if (heard) listener(heard);
        });
        client.query(`listen ${channel}`).then(() => listener({ kind: "resync" }), reject);
        if (signal.aborted) stop();
      });
    } finally {
      signal.removeEventListener("abort", stop);
      await client.end();
    }
  }
}

function parse(payload: string): Signal | null {
  const [kind, ...given] = payload.split(" ");
  const [first, second] = given.map(Number);
  if (kind === "ready") return { kind, dueMs: Number(first) };
  if (kind === "beat") return { kind, sessionId: Number(first), beat: Number(second) };
  // What a newer node says and this one does not know is not for it.
  return kind === "recall" || kind === "tasks" || kind === "plans" || kind === "leadership" ? { kind } : null;
}
