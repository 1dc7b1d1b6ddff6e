import { resolve } from "node:path";
import { dumpStore } from "../../store/postgres/dump/dump.ts";
import { loadStore } from "../../store/postgres/dump/load.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { operator } from "../operator.ts";
import { requireStore } from "../reach.ts";
import type { Terminal } from "../screen/terminal.ts";
import { plain } from "../screen/text.ts";
import type { CommonOptions } from "../store-choice.ts";
import { atStore, type StorePlace } from "./at-store.ts";

export function dump(file: string, options: CommonOptions, terminal: Terminal): Promise<ExitCode> {
  requireStore(options, "store dump");
  const work = async ({ url, schema, text }: StorePlace) => {
    const { header, rows, openSessions } = await dumpStore(url, schema, resolve(file));
    const atText = new Date(header.atMs).toISOString();
    if (openSessions.length > 0)
      terminal.aside(
        `These go on: what they do after ${atText} is not in the file, and a store loaded from it fires the same slots again: ${openSessions.join(", ")}.`,
      );
    if (terminal.json)
      terminal.object({ file: resolve(file), atMs: header.atMs, migration: header.migration, rows, openSessions });
    else {
      counts(rows, terminal);
      terminal.line(
        `schema ${plain(schema)} of ${text} is in ${plain(file)}, version ${header.migration}, as it was at ${atText}`,
      );
    }
    return exitCodes.ok;
  };
  return atStore(options, work, false);
}

export function load(
  file: string,
  options: CommonOptions & { reason?: string },
  terminal: Terminal,
): Promise<ExitCode> {
  requireStore(options, "store load");
  const work = async ({ url, schema, text }: StorePlace) => {
    const change = { author: operator(), reason: options.reason ?? "" };
    const { header, rows, next, migration } = await loadStore(url, schema, resolve(file), change);
    if (terminal.json) terminal.object({ atMs: header.atMs, from: header.migration, to: migration, rows, next });
    else {
      counts(rows, terminal);
      terminal.line(
        `schema ${plain(schema)} of ${text} has all of ${plain(file)}, counted, and is at version ${migration}`,
      );
      terminal.line(
        `numbers go on from: run ${next.runId}, fence ${next.fence}, term ${next.term}. Nodes may start now; those of the source must not run beside them.`,
      );
    }
    return exitCodes.ok;
  };
  return atStore(options, work, true);
}

function counts(rows: Record<string, number>, terminal: Terminal): void {
  const some = Object.entries(rows).filter(([, count]) => count > 0);
  const total = some.reduce((sum, [, count]) => sum + count, 0);
  terminal.line(`${total} rows: ${some.map(([name, count]) => `${name} ${count}`).join(", ")}`);
}
