/**
 * The entries of the command palette that act on one run: on the run whose page is open, and on the run whose number is typed. The
 * run's state and the user's role decide which acts there are.
 */
import { IconArrowBackUp, IconArrowsDiff, IconBan, IconRefresh, IconTerminal2, IconTrash } from "@tabler/icons-react";
import { useNavigate, useRouterState } from "@tanstack/react-router";
import { useAnswer } from "../../api/answers.ts";
import { curlOf } from "../../api/call.ts";
import { useReach } from "../../api/may.ts";
import { useWords } from "../../messages/words.ts";
import { toast } from "../../parts/state/toasts.tsx";
import type { Run } from "../../runs/answers.ts";
import { numberOf } from "../../runs/number.ts";
import { actsOf } from "../../runs/states.ts";
import { isReadable } from "../../tasks/run/payload.ts";
import { hasWords, numberIn } from "./act-words.ts";
import type { Entry } from "./entry.ts";
import type { PaletteAct } from "./palette-act.tsx";

const icons = { rerun: IconRefresh, retry: IconArrowBackUp, cancel: IconBan, fail: IconBan };

/** @param typed `text` after a pause in typing, for which the server is searched */
export function useRunActs(
  text: string,
  typed: string,
  onAct: (act: PaletteAct) => void,
): { acts: Entry[]; isReading: boolean } {
  const { t } = useWords();
  const navigate = useNavigate();
  const reach = useReach("operator");
  const path = useRouterState({ select: ({ location }) => location.pathname });
  const here = numberOf(/^\/runs\/(\d+)/.exec(path)?.[1] ?? "");
  const other = numberOf(numberIn(typed));
  const shown = useAnswer("getRun", { run: here }, { enabled: here > 0 });
  // The number is searched before the run is read: there may be no such run, the user may not be allowed to see it, or the text is not
  // finished.
  const found = useAnswer("search", { q: String(other) }, { enabled: other > 0 && other !== here });
  const isRun = found.data?.runs.some(({ run }) => run === other) ?? false;
  const named = useAnswer("getRun", { run: other }, { enabled: isRun });
  const entry = (
    id: string,
    icon: Entry["icon"],
    said: string,
    go: () => void,
    words = "",
  ): Entry & { words: string } => ({
    id: `act ${id}`,
    text: said,
    more: t("palette.act"),
    icon,
    go,
    words,
  });
  const compare = (said: string, run: number, search: { with?: string } = {}) =>
    entry(`compare ${run} ${search.with}`, IconArrowsDiff, said, () => {
      void navigate({ to: "/runs/$run/compare", params: { run: String(run) }, search });
    });
  const copy = async (run: number) => {
    try {
      await navigator.clipboard.writeText(curlOf("getRun", { run }));
      toast({ text: t("act.copied") });
    } catch {
      // The browser refuses, or offers no clipboard because the page was not loaded by HTTPS.
      toast({ text: t("palette.notCopied"), failed: true });
    }
  };
  const actsOn = (run: Run) => {
    const { run: number, letter } = run;
    const vars = { run: String(number) };
    const isDead = letter?.state === "open";
    const open = reach.on(run.task) ? actsOf(run) : [];
    return [
      ...open.map((act) =>
        entry(
          `${act} ${number}`,
          icons[act],
          t(act === "rerun" && isDead ? "palette.redrive" : `palette.${act}`, vars),
          () => onAct({ act, run }),
          act === "rerun" ? t("palette.rerunWords") : "",
        ),
      ),
      ...(open.includes("rerun") && isReadable(run.payload)
        ? [
            entry(
              `edit ${number}`,
              IconRefresh,
              t("palette.edit", vars),
              () => onAct({ act: "edit", run }),
              t("palette.rerunWords"),
            ),
          ]
        : []),
      ...(isDead && reach.on(run.task)
        ? [
            entry(`dismiss ${number}`, IconTrash, t("palette.dismiss", vars), () =>
              onAct({ act: "dismiss", run: number, fingerprint: letter.fingerprint }),
            ),
          ]
        : []),
      compare(t("palette.compare", vars), number),
      entry(`curl ${number}`, IconTerminal2, t("palette.curl", vars), () => void copy(number)),
    ];
  };
  const acts = [
    ...(shown.data && named.data && isRun
      ? [compare(t("palette.compareWith", { run: String(here), other: String(other) }), here, { with: String(other) })]
      : []),
    ...(named.data && isRun ? actsOn(named.data) : []),
    ...(shown.data ? actsOn(shown.data) : []),
  ];
  return {
    acts: acts.filter((one) => hasWords(`${one.text} ${one.words}`, text)),
    isReading: [shown, found, named].some(({ isFetching, data }) => isFetching && data === undefined),
  };
}
