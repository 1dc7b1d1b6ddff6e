/**
 * The peers under the same faults as Carillon: docs/explain/reliability-peers.md.
 *
 *   npm run prove -- faults --peers  Carillon, BullMQ, pg-boss and graphile-worker, one after the other: about six minutes
 *   … --only NAME                    one of them
 *   … --seconds S                    the time in which slots are due; default and minimum 60
 *   … --seed S                       default: a new seed each time
 *   … --json                         prints only the line at the end
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { wholeNumber } from "../../../simulation/src/option-numbers.ts";
import type { Figures } from "./account.ts";
import { everyMs, longestWaitMs, type Played, play, workers } from "./play.ts";
import { type Name, names } from "./subject.ts";

const { values } = parseArgs({
  options: {
    peers: { type: "boolean", default: true },
    only: { type: "string" },
    seconds: { type: "string", default: "60" },
    seed: { type: "string" },
    json: { type: "boolean", default: false },
  },
});
const chosen = names.filter((name) => values.only === undefined || values.only === name);
if (chosen.length === 0) throw new Error(`--only is ${names.join(", ")}, not ${values.only}`);
const seconds = wholeNumber("seconds", values.seconds, 60);
const seed = values.seed === undefined ? Math.floor(Math.random() * 1e9) : wholeNumber("seed", values.seed, 0);
const say = (text: string) => {
  if (!values.json) process.stdout.write(`${text}\n`);
};

const folder = mkdtempSync(join(tmpdir(), "carillon-peers-"));
const played: Partial<Record<Name, Played & { version: string }>> = {};
say(
  `${workers} workers, a slot each ${everyMs} ms for ${seconds} s, at most ${longestWaitMs} ms after it; seed ${seed}`,
);
for (const who of chosen) {
  const version = versionOf(who);
  say(`${who} ${version}`);
  played[who] = { version, ...(await play({ who, seed, seconds, folder, say })) };
}
table();
rmSync(folder, { recursive: true });
process.stdout.write(`${JSON.stringify({ seed, seconds, node: process.versions.node, played })}\n`);
// Exit explicitly, because channels to processes may still be open.
process.exit(0);

function table(): void {
  const rows: [string, (one: Played) => unknown][] = [
    ...(["once", "recurring"] as const).flatMap((kind) =>
      (Object.keys(Object.values(played)[0]?.[kind] ?? {}) as (keyof Figures)[]).map(
        (figure): [string, (one: Played) => unknown] => [`${kind}: ${figure}`, (one) => one[kind][figure]],
      ),
    ),
    ...(["period_ms", "in_the_midst", "fell", "waited_ms", "refused"] as const).map(
      (figure): [string, (one: Played) => unknown] => [figure, (one) => one[figure] ?? "–"],
    ),
  ];
  say(["".padEnd(28), ...chosen.map((who) => who.padStart(16))].join(""));
  for (const [name, of] of rows)
    say([name.padEnd(28), ...chosen.map((who) => String(of(played[who] as Played)).padStart(16))].join(""));
}

function versionOf(who: Name): string {
  const file =
    who === "carillon"
      ? new URL("../../../../../scheduler/package.json", import.meta.url)
      : new URL(`./node_modules/${who}/package.json`, import.meta.url);
  return (JSON.parse(readFileSync(file, "utf8")) as { version: string }).version;
}
