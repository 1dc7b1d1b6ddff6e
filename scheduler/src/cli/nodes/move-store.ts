import { resolve } from "node:path";
import { openEmbedded } from "../../embedded/index.ts";
import { settingsOf } from "../../settings/settings.ts";
import { dumpStore } from "../../store/postgres/dump/dump.ts";
import { loadStore } from "../../store/postgres/dump/load.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { operator } from "../operator.ts";
import { requireStore } from "../reach.ts";
import type { Terminal } from "../screen/terminal.ts";
import { plain } from "../screen/text.ts";
import { type CommonOptions, chosenUrl, defaultDirectory, lookingOptions, placeText } from "../store-choice.ts";

interface Place {
  url: string;
  schema: string;
  text: string;
}

/** @param create may make an embedded store */
async function at<T>(options: CommonOptions, create: boolean, work: (place: Place) => Promise<T>): Promise<T> {
  const looking = lookingOptions(options);
  const given = chosenUrl(options);
  const { directory = defaultDirectory } = looking;
  const embedded = given === undefined ? await openEmbedded({ directory, create }) : undefined;
  try {
    const { schema } = settingsOf(looking);
    return await work({ url: given ?? embedded?.url ?? "", schema, text: placeText(given, embedded) });
  } finally {
    await embedded?.release();
  }
}

export function dump(file: string, options: CommonOptions, terminal: Terminal): Promise<ExitCode> {
  requireStore(options, "store dump");
  return at(options, false, async ({ url, schema, text }) => {
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
  });
}

export function load(
  file: string,
  options: CommonOptions & { reason?: string },
  terminal: Terminal,
): Promise<ExitCode> {
  requireStore(options, "store load");
  return at(options, true, async ({ url, schema, text }) => {
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
  });
}

function counts(rows: Record<string, number>, terminal: Terminal): void {
  const some = Object.entries(rows).filter(([, count]) => count > 0);
  const total = some.reduce((sum, [, count]) => sum + count, 0);
  terminal.line(`${total} rows: ${some.map(([name, count]) => `${name} ${count}`).join(", ")}`);
}
