/** Goes anywhere by a few letters: screens, tasks, runs and operations by number, open alarms, workers, and what can be chosen. */
import { Modal } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import {
  IconAlertTriangle,
  IconCornerDownLeft,
  IconKeyboard,
  IconLanguage,
  IconListDetails,
  IconMoon,
  IconPlayerPlay,
  IconSearch,
  IconServer2,
  IconStack2,
} from "@tabler/icons-react";
import { useNavigate } from "@tanstack/react-router";
import { useId, useState } from "react";
import { useAnswer } from "../api/answers.ts";
import { useSees } from "../api/may.ts";
import { useWords } from "../messages/words.ts";
import { prefer, usePreferences } from "../preferences.ts";
import css from "./palette.module.css";
import { screens } from "./screens.ts";

interface Entry {
  id: string;
  text: string;
  more: string;
  icon: typeof IconMoon;
  go: () => void;
}

export function Palette({ onClose, onKeys }: { onClose: () => void; onKeys: () => void }) {
  const { t } = useWords();
  const navigate = useNavigate();
  const list = useId();
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const [asked] = useDebouncedValue(text.trim(), 120);
  const found = useAnswer("search", { q: asked.slice(0, 200) || " " }, { enabled: asked !== "", keep: true });
  const operation = useOperation(asked);
  const alarms = useAnswer("listAlarms", { limit: 100 }, { enabled: asked !== "" });
  const fixed = useFixed(onKeys);
  const wanted = text.trim().toLowerCase();
  const entries: Entry[] = [
    ...fixed.filter((entry) => entry.text.toLowerCase().includes(wanted)),
    ...(asked === "" || !found.data
      ? []
      : [
          ...found.data.runs.map(({ run, task }) => ({
            ...{ id: `run ${run}`, text: `${t("noun.run")} ${run}`, more: task, icon: IconPlayerPlay },
            go: () => void navigate({ to: "/runs/$run", params: { run: String(run) } }),
          })),
          ...(operation === undefined
            ? []
            : [
                {
                  ...{ id: `operation ${operation.operation}`, icon: IconStack2 },
                  text: t("operations.title", { operation: String(operation.operation) }),
                  more: `${t(`operation.word.${operation.kind}`)} · ${t(`operation.${operation.state}`)}`,
                  go: () =>
                    void navigate({
                      to: "/operations/$operation",
                      params: { operation: String(operation.operation) },
                    }),
                },
              ]),
          ...(alarms.data?.items ?? [])
            .map(({ rule, task }) => ({
              ...{ id: `alarm ${rule} ${task}`, icon: IconAlertTriangle, text: t(`alarm.${rule}`) },
              more: task ?? t("alarms.cluster"),
              go: () => void navigate({ to: "/alarms" }),
            }))
            .filter(({ text: said, more }) => `${said} ${more}`.toLowerCase().includes(wanted))
            .slice(0, alarmsShown),
          ...found.data.tasks.map(({ name, group }) => ({
            ...{ id: `task ${name}`, text: name, more: group, icon: IconListDetails },
            go: () => void navigate({ to: "/tasks/$task", params: { task: name } }),
          })),
          ...found.data.workers.map(({ node, role }) => ({
            ...{ id: `worker ${node}`, text: node, more: t(`noun.${role}`), icon: IconServer2 },
            go: () => void navigate({ to: role === "node" ? "/nodes" : "/workers" }),
          })),
        ]),
  ];
  const chosen = Math.min(at, entries.length - 1);
  const take = (entry: Entry | undefined) => {
    if (!entry) return;
    onClose();
    entry.go();
  };
  const onKey = (event: React.KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0) {
      event.preventDefault();
      const next = (chosen + step + entries.length) % Math.max(1, entries.length);
      setAt(next);
      document.getElementById(`${list}-${next}`)?.scrollIntoView({ block: "nearest" });
    } else if (event.key === "Enter" && !event.nativeEvent.isComposing) take(entries[chosen]);
  };
  return (
    <Modal.Root opened onClose={onClose} padding={0} size={600} yOffset="12vh">
      <Modal.Overlay />
      <Modal.Content aria-label={t("palette.title")}>
        <div className={css.field}>
          <IconSearch size={19} aria-hidden />
          <input
            data-autofocus
            role="combobox"
            aria-expanded
            aria-controls={list}
            aria-label={t("palette.title")}
            aria-activedescendant={entries.length > 0 ? `${list}-${chosen}` : undefined}
            placeholder={t("palette.placeholder")}
            value={text}
            onChange={(event) => {
              setText(event.currentTarget.value);
              setAt(0);
            }}
            onKeyDown={onKey}
          />
        </div>
        <div id={list} role="listbox" aria-label={t("palette.title")} className={css.list}>
          {entries.map((entry, index) => (
            // biome-ignore lint/a11y/useKeyWithClickEvents: the field has the keys.
            <div
              key={entry.id}
              id={`${list}-${index}`}
              role="option"
              tabIndex={-1}
              aria-selected={index === chosen}
              className={css.entry}
              onMouseMove={() => setAt(index)}
              onClick={() => take(entry)}
            >
              <entry.icon size={17} stroke={1.8} aria-hidden />
              <span className={`${css.text} cut`}>{entry.text}</span>
              <span className="soft cut">{entry.more}</span>
              {index === chosen && <IconCornerDownLeft size={15} aria-hidden />}
            </div>
          ))}
        </div>
        {entries.length === 0 && (
          <p className={css.none}>{found.isFetching ? t("notice.loading") : t("palette.none")}</p>
        )}
      </Modal.Content>
    </Modal.Root>
  );
}

const alarmsShown = 5;

/** They are numbered one by one, so the newest tells whether there is one of this number. */
function useOperation(asked: string) {
  const number = /^[1-9]\d{0,14}$/.test(asked) ? Number(asked) : 0;
  const newest = useAnswer("listOperations", { limit: 1 }, { enabled: number > 0 });
  const isThere = number > 0 && number <= (newest.data?.items[0]?.operation ?? 0);
  const { data } = useAnswer("getOperation", { operation: number }, { enabled: isThere });
  return isThere ? data : undefined;
}

function useFixed(onKeys: () => void): Entry[] {
  const { t } = useWords();
  const navigate = useNavigate();
  const { scheme, language } = usePreferences();
  const isAdmin = useSees("admin", true);
  return [
    ...screens
      .flat()
      .filter(({ least }) => least !== "admin" || isAdmin)
      .map(({ to, name, icon }) => ({
        ...{ id: to, text: t(name), more: t("palette.screen"), icon },
        go: () => void navigate({ to }),
      })),
    {
      ...{ id: "scheme", text: t(scheme === "dark" ? "palette.light" : "palette.dark"), more: "", icon: IconMoon },
      go: () => prefer({ scheme: scheme === "dark" ? "light" : "dark" }),
    },
    {
      ...{ id: "language", text: language === "en" ? "切换到中文" : "Switch to English", more: "", icon: IconLanguage },
      go: () => prefer({ language: language === "en" ? "zh" : "en" }),
    },
    { id: "keys", text: t("keys.title"), more: "?", icon: IconKeyboard, go: onKeys },
  ];
}
