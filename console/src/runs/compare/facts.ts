import type { Words } from "../../messages/words.ts";
import { plain } from "../../parts/value/plain.ts";
import type { Run } from "../answers.ts";
import { labelsText } from "../labels.ts";

/** One fact about a run as text; "–" if the run has none. */
export interface Fact {
  name: string;
  texts: [string, string];
  /** True if the two differ in a way that may explain how the runs ended; times of day always differ, and do not. */
  differs: boolean;
  /** The second duration divided by the first; undefined if they do not differ clearly. */
  ratio?: number;
}

const none = "–";
/** Two durations differ clearly if they differ by at least this factor and by at least this many ms. */
const [clearFactor, clearMs] = [1.5, 100];

/** The second duration divided by the first; undefined if they do not differ clearly, or if one is unknown. */
export function ratioOf(first: number | null, second: number | null): number | undefined {
  if (first === null || second === null || Math.abs(second - first) < clearMs) return undefined;
  const ratio = Math.max(1, second) / Math.max(1, first);
  return ratio >= clearFactor || ratio <= 1 / clearFactor ? ratio : undefined;
}

/** The facts of two runs, side by side. */
export function factsOf(runs: readonly [Run, Run], words: Words): Fact[] {
  const { t, span, when } = words;
  const [a, b] = runs;
  const same = (name: string, text: (run: Run) => string): Fact => ({
    name,
    texts: [text(a), text(b)],
    differs: text(a) !== text(b),
  });
  const time = (name: string, text: (run: Run) => string): Fact => ({ ...same(name, text), differs: false });
  const lasting = (name: string, ms: (run: Run) => number | null): Fact => {
    const ratio = ratioOf(ms(a), ms(b));
    const text = (run: Run) => (ms(run) === null ? none : span(Math.max(0, ms(run) ?? 0)));
    return { ...same(name, text), differs: ratio !== undefined, ...(ratio === undefined ? {} : { ratio }) };
  };
  const own = ({ overrides }: Run, part: "retry" | "runTimeout") =>
    overrides?.[part] === undefined ? none : JSON.stringify(overrides[part]);
  return [
    ...(a.task === b.task ? [] : [same(t("noun.task"), ({ task }) => task)]),
    same(t("runs.state"), ({ state }) => t(`state.${state}`)),
    time(t("run.due"), ({ due }) => when(Date.parse(due))),
    time(t("run.ended"), ({ ended }) => (ended === null ? none : when(Date.parse(ended)))),
    lasting(t("run.late"), ({ lateMs }) => lateMs),
    lasting(t("run.took"), ({ tookMs }) => tookMs),
    same(t("run.attempt"), ({ attempt }) => String(attempt)),
    same(t("noun.worker"), ({ node }) => node ?? none),
    same(t("compare.release"), ({ release }) => release ?? none),
    same(t("run.version"), ({ version }) => String(version)),
    same(t("run.source"), ({ source }) => t(`source.${source}`)),
    same(t("run.priority"), ({ priority }) => String(priority)),
    same(t("run.key"), ({ key }) => key ?? none),
    same(t("run.labels"), ({ labels }) => plain(labelsText(labels)) || none),
    same(t("run.ownTries"), (run) => own(run, "retry")),
    same(t("run.ownTimeout"), (run) => own(run, "runTimeout")),
  ].filter(({ texts }) => texts.some((text) => text !== none));
}
