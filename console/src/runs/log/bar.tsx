/** The bar above a log: the search, the least level shown, and jumps to the start and the end. */
import { Button, Checkbox, SegmentedControl, Select, TextInput } from "@mantine/core";
import { IconArrowBarToDown, IconArrowBarToUp, IconArrowDown, IconArrowUp, IconSearch } from "@tabler/icons-react";
import type { ReactNode } from "react";
import { useWords } from "../../messages/words.ts";
import type { Hits } from "./hits.ts";
import { type Level, levels } from "./levels.ts";
import css from "./log.module.css";
import type { View } from "./view.ts";

export function Bar({
  find,
  onFind,
  hits,
  least,
  onLeast,
  attempts,
  attempt,
  onAttempt,
  download,
  live,
  view,
  count,
  isWhole,
}: {
  find: string;
  onFind: (text: string) => void;
  hits: Hits;
  least: Level;
  onLeast: (level: Level) => void;
  /** The number of attempts so far. */
  attempts: number;
  /** The attempt whose lines are shown; undefined for all. */
  attempt: number | undefined;
  onAttempt: (attempt: number | undefined) => void;
  download: ReactNode;
  live: boolean;
  view: View;
  /** The number of lines that are loaded. */
  count: number;
  /** True if the loaded lines are the whole log. */
  isWhole: boolean;
}) {
  const words = useWords();
  const { t } = words;
  return (
    <search className={css.bar} aria-label={t("log.find")}>
      <TextInput
        className={css.find}
        aria-label={t("log.find")}
        placeholder={t("log.find")}
        leftSection={<IconSearch size={15} aria-hidden />}
        value={find}
        onChange={(event) => onFind(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter") hits.go(event.shiftKey ? -1 : 1);
        }}
      />
      {find !== "" && (
        <>
          <span className="soft figures" role="status">
            {hits.place > 0
              ? t("log.hits", { at: hits.place, n: hits.count }) + (hits.more ? "+" : "")
              : t(hits.isLooking ? "log.looking" : "log.noHit")}
          </span>
          <Button.Group>
            <Button variant="default" px={8} aria-label={t("log.before")} onClick={() => hits.go(-1)}>
              <IconArrowUp size={15} />
            </Button>
            <Button variant="default" px={8} aria-label={t("log.after")} onClick={() => hits.go(1)}>
              <IconArrowDown size={15} />
            </Button>
          </Button.Group>
        </>
      )}
      <SegmentedControl
        size="xs"
        aria-label={t("log.level")}
        value={least}
        onChange={(level) => onLeast(level as Level)}
        data={levels.map((level) => ({ value: level, label: t(level === "debug" ? "log.all" : `log.${level}`) }))}
      />
      {attempts > 1 && (
        <Select
          size="xs"
          w={140}
          aria-label={t("log.attempt")}
          allowDeselect={false}
          data={[
            { value: "", label: t("log.anyAttempt") },
            ...Array.from({ length: attempts }, (_, at) => ({
              value: String(at + 1),
              label: t("run.attemptOf", { attempt: String(at + 1) }),
            })),
          ]}
          value={attempt === undefined ? "" : String(attempt)}
          onChange={(value) => onAttempt(value ? Number(value) : undefined)}
        />
      )}
      {live && (
        <Checkbox
          size="sm"
          label={t("log.follow")}
          checked={view.follows}
          onChange={(event) => view.setFollows(event.currentTarget.checked)}
        />
      )}
      <span className={`${css.count} soft figures`}>
        {t("log.lines", { n: isWhole ? count : `${words.count(count)}+` })}
      </span>
      {download}
      <Button.Group>
        <Button variant="default" px={8} aria-label={t("log.toStart")} onClick={() => view.to("start")}>
          <IconArrowBarToUp size={15} />
        </Button>
        <Button variant="default" px={8} aria-label={t("log.toEnd")} onClick={() => view.to("end")}>
          <IconArrowBarToDown size={15} />
        </Button>
      </Button.Group>
    </search>
  );
}
