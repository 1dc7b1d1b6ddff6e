/** The entries of the command palette: fixed entries, and for a text also acts, search results and alarms. */
import {
  IconAlertTriangle,
  IconKeyboard,
  IconLanguage,
  IconListDetails,
  IconMoon,
  IconPlayerPlay,
  IconServer2,
  IconStack2,
} from "@tabler/icons-react";
import { useNavigate } from "@tanstack/react-router";
import { ruleName } from "../alarms/rule.ts";
import { useAnswer } from "../api/answers.ts";
import { useSees } from "../api/may.ts";
import { useWords } from "../messages/words.ts";
import { prefer, usePreferences } from "../preferences.ts";
import { useActs } from "./palette/act-entries.ts";
import { hasVerb, nameIn } from "./palette/act-words.ts";
import type { Entry } from "./palette/entry.ts";
import type { PaletteAct } from "./palette/palette-act.tsx";
import { useRunActs } from "./palette/run-entries.ts";
import { screens } from "./screens.ts";

/** Finds the entries that match `text`. @param typed `text` after a pause in typing, for which the server is searched */
export function useEntries(
  text: string,
  typed: string,
  onKeys: () => void,
  onAct: (act: PaletteAct) => void,
): { entries: Entry[]; isLooking: boolean } {
  const words = useWords();
  const { t } = words;
  const navigate = useNavigate();
  const verbs = t("palette.verbs");
  const asked = nameIn(typed, verbs);
  const found = useAnswer("search", { q: asked.slice(0, 200) || " " }, { enabled: asked !== "", keep: true });
  const alarms = useAnswer("listAlarms", { limit: 100 }, { enabled: asked !== "" });
  const results = asked === "" ? undefined : found.data;
  const fixed = useFixed(onKeys);
  const { acts, isReading } = useActs({ text, name: asked, found: results, onAct });
  const onRun = useRunActs(text, typed, onAct);
  // If the text has the word of an act, the acts come first, before the page of the task or worker.
  const isAct = asked !== typed;
  const wanted = text.trim().toLowerCase();
  // The acts on the run whose page is open are what the user most likely wants there, until the user types something else.
  const isOnRun = wanted === "" || hasVerb(typed, verbs);
  const pages = (results?.runs ?? []).map(({ run, task }) => ({
    id: `run ${run}`,
    text: `${t("noun.run")} ${run}`,
    more: task,
    icon: IconPlayerPlay,
    go: () => void navigate({ to: "/runs/$run", params: { run: String(run) } }),
  }));
  const isPage = pages.some((page) => page.text.toLowerCase() === wanted);
  const entries: Entry[] = [
    ...(isPage ? pages : []),
    ...(isOnRun ? onRun.acts : []),
    ...(isAct ? acts : []),
    ...fixed.filter((entry) => entry.text.toLowerCase().includes(wanted)),
    ...(results
      ? [
          ...(isPage ? [] : pages),
          ...results.operations.map(({ operation, kind, state }) => ({
            id: `operation ${operation}`,
            icon: IconStack2,
            text: t("operations.title", { operation: String(operation) }),
            more: `${t(`operation.word.${kind}`)} · ${t(`operation.${state}`)}`,
            go: () => void navigate({ to: "/operations/$operation", params: { operation: String(operation) } }),
          })),
          ...(alarms.data?.items ?? [])
            .map(({ rule, task }) => ({
              id: `alarm ${rule} ${task}`,
              icon: IconAlertTriangle,
              text: ruleName(rule, words),
              more: task ?? t("alarms.cluster"),
              go: () => void navigate({ to: "/alarms" }),
            }))
            .filter(({ text: said, more }) => `${said} ${more}`.toLowerCase().includes(wanted))
            .slice(0, alarmsShown),
          ...results.tasks.map(({ name, group }) => ({
            id: `task ${name}`,
            text: name,
            more: group,
            icon: IconListDetails,
            go: () => void navigate({ to: "/tasks/$task", params: { task: name } }),
          })),
          ...results.workers.map(({ node, role }) => ({
            id: `worker ${node}`,
            text: node,
            more: t(`noun.${role}`),
            icon: IconServer2,
            go: () => void navigate({ to: role === "node" ? "/nodes" : "/workers" }),
          })),
        ]
      : []),
    ...(isOnRun ? [] : onRun.acts),
    ...(isAct ? [] : acts),
  ];
  return { entries, isLooking: found.isFetching || (isAct && isReading) || (isOnRun && onRun.isReading) };
}

const alarmsShown = 5;

function useFixed(onKeys: () => void): Entry[] {
  const words = useWords();
  const { t } = words;
  const navigate = useNavigate();
  const { scheme, language } = usePreferences();
  const isAdmin = useSees("admin", true);
  return [
    ...screens
      .flat()
      .filter(({ least }) => least !== "admin" || isAdmin)
      .map(({ to, name, icon }) => ({
        id: to,
        text: t(name),
        more: t("palette.screen"),
        icon,
        go: () => void navigate({ to }),
      })),
    {
      id: "scheme",
      text: t(scheme === "dark" ? "palette.light" : "palette.dark"),
      more: "",
      icon: IconMoon,
      go: () => prefer({ scheme: scheme === "dark" ? "light" : "dark" }),
    },
    {
      id: "language",
      text: language === "en" ? "切换到中文" : "Switch to English",
      more: "",
      icon: IconLanguage,
      go: () => prefer({ language: language === "en" ? "zh" : "en" }),
    },
    { id: "keys", text: t("keys.title"), more: "?", icon: IconKeyboard, go: onKeys },
  ];
}
