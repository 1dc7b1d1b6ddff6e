/** The entries of the command palette that act. Each opens the dialog of its screen; those that the user's role refuses are left out. */
import { IconDroplet, IconPlayerPause, IconPlayerPlay, IconPlus } from "@tabler/icons-react";
import { useAnswer } from "../../api/answers.ts";
import type { Answer } from "../../api/call.ts";
import { useMay, useReach } from "../../api/may.ts";
import { useWords } from "../../messages/words.ts";
import { useResume } from "../../tasks/undo.ts";
import { hasWords } from "./act-words.ts";
import type { Entry } from "./entry.ts";
import type { PaletteAct } from "./palette-act.tsx";

/** The most tasks, and the most groups and workers, for which acts are offered at once. */
const tasksShown = 3;
const othersShown = 2;

interface Asked {
  /** The whole text, with the words of the act. */
  text: string;
  /** The name that is searched. */
  name: string;
  found: Answer<"search"> | undefined;
  onAct: (act: PaletteAct) => void;
}

export function useActs({ text, name, found, onAct }: Asked): { acts: Entry[]; isReading: boolean } {
  const { t } = useWords();
  const resume = useResume();
  const mayCreate = useMay("editor");
  const mayBulk = useMay("operator");
  const reach = useReach("operator");
  const isAsked = name !== "" && mayBulk;
  const matching = `*${name.replaceAll(/[*?\\]/g, "")}*`;
  const tasks = useAnswer(
    "listTasks",
    { matching: matching.slice(0, 200), limit: tasksShown },
    { enabled: isAsked, keep: true },
  );
  const groups = useAnswer("listGroups", { limit: 200 }, { enabled: isAsked });
  const drained = useAnswer("listDrained", { limit: 200 }, { enabled: isAsked && reach.everywhere });
  const more = t("palette.act");
  const entry = (id: string, said: string, icon: Entry["icon"], go: () => void): Entry => ({
    id,
    text: said,
    more,
    icon,
    go,
  });
  const acts: Entry[] = [];
  if (mayCreate) acts.push(entry("act create", t("palette.create"), IconPlus, () => onAct({ act: "create" })));
  if (isAsked) {
    for (const { name: task, paused } of tasks.data?.items ?? []) {
      if (!reach.on(task)) continue;
      acts.push(
        entry(`act run ${task}`, t("palette.run", { task }), IconPlayerPlay, () => onAct({ act: "run", task })),
      );
      acts.push(
        paused
          ? entry(`act resume ${task}`, t("palette.resume", { task }), IconPlayerPlay, () => resume(task))
          : entry(`act pause ${task}`, t("palette.pause", { task }), IconPlayerPause, () =>
              onAct({ act: "pause", task }),
            ),
      );
    }
    const named = (one: string) => one.toLowerCase().includes(name.toLowerCase());
    for (const { name: group } of (groups.data?.items ?? []).filter((one) => named(one.name)).slice(0, othersShown))
      acts.push(
        entry(`act pause group ${group}`, t("palette.pauseGroup", { group }), IconPlayerPause, () =>
          onAct({ act: "pauseGroup", group }),
        ),
        entry(`act resume group ${group}`, t("palette.resumeGroup", { group }), IconPlayerPlay, () =>
          onAct({ act: "resumeGroup", group }),
        ),
      );
    if (reach.everywhere && drained.data)
      for (const { node } of (found?.workers ?? []).slice(0, othersShown)) {
        const isDrained = drained.data.items.some((one) => one.node === node);
        const said = t(isDrained ? "palette.undrain" : "palette.drain", { node });
        acts.push(
          entry(`act drain ${node}`, said, IconDroplet, () => onAct({ act: isDrained ? "undrain" : "drain", node })),
        );
      }
  }
  return {
    acts: acts.filter((one) => hasWords(one.text, text)),
    isReading: [tasks, groups, drained].some(({ isFetching }) => isFetching),
  };
}
