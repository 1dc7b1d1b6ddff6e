import { version } from "../base/version.ts";
import type { ExitCode } from "./exit-codes.ts";
import { deciding, makeTowers, type NodeOptions, runUntilStopped } from "./running.ts";
import type { Terminal } from "./screen/terminal.ts";
import { plain } from "./screen/text.ts";
import { JsonView, LiveView, PlainView, type View } from "./screen/views.ts";
import { coordinationText, placeText } from "./store-choice.ts";
import { Upcoming } from "./tasks/upcoming.ts";

/** Runs a scheduler and a worker in one process, and shows a live view of the runs. */
export async function dev(file: string | undefined, options: NodeOptions, terminal: Terminal): Promise<ExitCode> {
  const view = viewFor(options, terminal);
  const towers = await makeTowers(file, deciding(options, view.log, { scheduler: true, worker: true }), view.log);
  const over = new AbortController();
  const upcoming = towers.map((tower) => new Upcoming(tower, over.signal));
  const following: Promise<void>[] = [];
  for (const tower of towers) tower.onRun((notice) => view.notice(notice));
  try {
    return await runUntilStopped(towers, {
      async onStarted() {
        for (const one of upcoming) following.push(one.follow());
        const opened = await Promise.all(towers.map((tower) => tower.open()));
        const stores = new Set(opened.map(({ url, embedded }) => placeText(url, embedded)));
        const services = new Set(opened.flatMap(({ coordination: one }) => (one ? [coordinationText(one)] : [])));
        const leads = () => towers.map(({ node, term }) => ({ node, term }));
        const nodeText = ({ node, term }: { node: string; term: number | null }) =>
          `node ${plain(node)} ${term === null ? "follows" : `leads, term ${term}`}`;
        await Promise.race([Promise.all(upcoming.map((one) => one.ready)), Promise.all(following)]);
        view.begin({
          header: () => [
            `carillon ${version}`,
            [...stores, ...services].join(", "),
            ...leads().map(nodeText),
            ...towers.flatMap(({ listening }) => (listening === null ? [] : [`console at http://${listening}`])),
          ],
          store: [...stores].join(", "),
          coordination: [...services].join(", ") || null,
          leads,
          upcoming: (count) =>
            upcoming
              .flatMap((one, at) => one.at(opened[at]?.nowMs() ?? 0, count))
              .sort((a, b) => a.atMs - b.atMs)
              .slice(0, count),
          nowMs: () => opened[0]?.nowMs() ?? 0,
        });
      },
      onStopping() {
        view.stopping();
        over.abort();
      },
    });
  } finally {
    over.abort();
    await Promise.all(following);
    view.end();
  }
}

function viewFor({ logLevel }: NodeOptions, terminal: Terminal): View {
  // At level info the view already shows what Carillon would log.
  const level = logLevel === "info" ? "warn" : logLevel;
  if (terminal.json) return new JsonView(level === "warn" ? "info" : level);
  if (process.stdout.isTTY && process.env.TERM !== "dumb") return new LiveView(terminal.style, level);
  return new PlainView(terminal.style, level);
}
