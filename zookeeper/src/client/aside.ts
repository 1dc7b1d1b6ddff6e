/** Requests that the client sends directly on a connection, outside of the session's queue. */
import { serverError } from "../base/errors.ts";
import type { Connection } from "../connection/connection.ts";
import { Call, type Question } from "../requests/call.ts";
import type { SessionCore } from "../session/session-core.ts";
import { op } from "../wire/codes.ts";

const nothing = () => undefined;

/**
 * Sets the session's watches again on a new connection, before any call is sent, so that every later read is covered by a watch. Readers
 * of watches get the `gap` event once all watches are set.
 */
export function setWatchesAgain(connection: Connection, session: SessionCore, zxid: bigint): void {
  const bodies = session.watches.setAgain(zxid);
  bodies.forEach((body, index) => {
    const isLast = index === bodies.length - 1;
    connection.sendSetWatches(body, (code) => {
      if (code !== 0) session.watches.refused(serverError(code, "setting the watches again", ""));
      else if (isLast) session.watches.gap();
    });
  });
}

/** Sends a request on a connection, outside of any session's queue. */
export function askOn<T>(connection: Connection, question: Question<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const call = new Call(question, resolve, reject, undefined);
    connection.send(call);
    void connection.lost.then((reason) => call.fail(reason));
  });
}

/**
 * Ends the session at the server. Resolves when the server has answered, the connection is lost, or `patience` aborts.
 * @returns true if the server answered or refused
 */
export async function closeSession(connection: Connection, patience: AbortSignal): Promise<boolean> {
  const question = { op: op.closeSession, what: "close", path: "", repeatable: false, write: nothing, read: nothing };
  const out = new Promise<false>((resolve) => {
    patience.addEventListener("abort", () => resolve(false), { once: true });
  });
  const answered = askOn(connection, question).then(
    () => true,
    () => !connection.isLost, // true after a refusal, because the server would refuse a second request as well
  );
  return Promise.race([answered, out]);
}
