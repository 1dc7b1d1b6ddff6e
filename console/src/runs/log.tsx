import { Button, Checkbox, SegmentedControl, TextInput } from "@mantine/core";
import { IconArrowDown, IconArrowUp, IconSearch } from "@tabler/icons-react";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { Fragment, useEffect, useMemo, useRef, useState } from "react";
import { useWords } from "../messages/words.ts";
import { Trouble, Waiting } from "../parts/notice.tsx";
import type { Filter } from "../router.tsx";
import { bare, pieces } from "./ansi.ts";
import css from "./log.module.css";
import { type LogLine, useLogLines } from "./log-lines.ts";

const levels = ["debug", "info", "warn", "error"] as const;
type Level = (typeof levels)[number];
const lineHeight = 22;
const messageShown = 4_000;

export function Log({ run, live }: { run: number; live: boolean }) {
  const words = useWords();
  const { t } = words;
  const search = useSearch({ from: "/runs/$run" });
  const navigate = useNavigate({ from: "/runs/$run" });
  const set = (change: Filter) =>
    void navigate({ search: (before: Filter) => ({ ...before, ...change }), replace: true });
  const log = useLogLines(run, live);
  const [follows, setFollows] = useState(live);
  const [at, setAt] = useState(0);
  const place = useRef<HTMLDivElement>(null);
  const least: Level = levels.find((level) => level === search.level) ?? "debug";
  const find = search.find ?? "";
  const shown = useMemo(
    () =>
      least === "debug" ? log.lines : log.lines.filter(({ level }) => levels.indexOf(level) >= levels.indexOf(least)),
    [log.lines, least],
  );
  const hits = useMemo(() => {
    const wanted = find.toLowerCase();
    if (wanted === "") return [];
    return shown.flatMap((line, index) => (textOf(line).toLowerCase().includes(wanted) ? [index] : []));
  }, [shown, find]);
  const virtual = useVirtualizer({
    count: shown.length,
    getScrollElement: () => place.current,
    estimateSize: () => lineHeight,
    overscan: 20,
    getItemKey: (index) => shown[index]?.id ?? index,
  });
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  const { more, reading, read } = log;
  useEffect(() => {
    if (more && !reading && (last >= shown.length - 200 || find !== "" || least !== "debug")) read();
  }, [more, reading, read, last, shown.length, find, least]);
  useEffect(() => {
    if (follows && shown.length > 0) virtual.scrollToIndex(shown.length - 1, { align: "end" });
  }, [follows, shown.length, virtual]);
  const go = (step: number) => {
    if (hits.length === 0) return;
    const next = (at + step + hits.length) % hits.length;
    setAt(next);
    setFollows(false);
    virtual.scrollToIndex(hits[next] ?? 0, { align: "center" });
  };
  const onScroll = () => {
    const element = place.current;
    // Who scrolls up wants to read; who comes back to the end wants to follow.
    if (element && live) setFollows(element.scrollHeight - element.scrollTop - element.clientHeight < lineHeight * 2);
  };
  return (
    <>
      <search className={css.bar} aria-label={t("log.find")}>
        <TextInput
          className={css.find}
          aria-label={t("log.find")}
          placeholder={t("log.find")}
          leftSection={<IconSearch size={15} aria-hidden />}
          value={find}
          onChange={(event) => {
            setAt(0);
            set({ find: event.currentTarget.value });
          }}
          onKeyDown={(event) => {
            if (event.key === "Enter") go(event.shiftKey ? -1 : 1);
          }}
        />
        {find !== "" && (
          <>
            <span className="soft figures" role="status">
              {hits.length === 0
                ? t("log.noHit")
                : t("log.hits", { at: Math.min(at, hits.length - 1) + 1, n: hits.length })}
            </span>
            <Button.Group>
              <Button variant="default" px={8} aria-label={t("log.before")} onClick={() => go(-1)}>
                <IconArrowUp size={15} />
              </Button>
              <Button variant="default" px={8} aria-label={t("log.after")} onClick={() => go(1)}>
                <IconArrowDown size={15} />
              </Button>
            </Button.Group>
          </>
        )}
        <SegmentedControl
          size="xs"
          aria-label={t("log.level")}
          value={least}
          onChange={(level) => set({ level: level === "debug" ? undefined : level })}
          data={levels.map((level) => ({ value: level, label: t(level === "debug" ? "log.all" : `log.${level}`) }))}
        />
        {live && (
          <Checkbox
            size="sm"
            label={t("log.follow")}
            checked={follows}
            onChange={(event) => setFollows(event.currentTarget.checked)}
          />
        )}
        <span className={`${css.count} soft figures`}>
          {t("log.lines", { n: log.lines.length })}
          {more ? "+" : ""}
        </span>
      </search>
      {log.error !== undefined && (
        <div className={css.trouble}>
          <Trouble error={log.error} again={log.again} small />
        </div>
      )}
      {log.dropped > 0 && <p className={css.told}>{t("log.dropped", { n: log.dropped })}</p>}
      {shown.length === 0 ? (
        reading ? (
          <Waiting rows={4} height={14} />
        ) : (
          log.error === undefined && (
            <p className={css.told}>
              {log.lines.length > 0 ? t("log.noneOfLevel") : live ? t("log.noneYet") : t("log.none")}
            </p>
          )
        )
      ) : (
        <div
          ref={place}
          className={css.place}
          // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys.
          tabIndex={0}
          role="log"
          aria-label={t("log.title")}
          aria-live="off"
          onScroll={onScroll}
        >
          <div style={{ height: virtual.getTotalSize(), position: "relative" }}>
            {items.map(({ index, key, start }) => {
              const line = shown[index];
              return (
                line && (
                  <div
                    key={key}
                    ref={virtual.measureElement}
                    data-index={index}
                    data-level={line.level}
                    className={css.line}
                    data-hit={hits[at] === index || undefined}
                    style={{ transform: `translateY(${start}px)` }}
                  >
                    <time dateTime={line.at} title={words.moment(Date.parse(line.at))}>
                      {words.exact(Date.parse(line.at))}
                    </time>
                    <span className={css.level}>{t(`log.${line.level}`)}</span>
                    <Message line={line} find={find} />
                  </div>
                )
              );
            })}
          </div>
        </div>
      )}
    </>
  );
}

const fieldsText = (fields: unknown): string =>
  typeof fields === "object" && fields !== null
    ? Object.entries(fields)
        .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`)
        .join(" ")
    : "";
const textOf = (line: LogLine) => `${bare(line.message)} ${fieldsText(line.fields)}`;

function Message({ line, find }: { line: LogLine; find: string }) {
  const { t } = useWords();
  const [whole, setWhole] = useState(false);
  const isLong = line.message.length > messageShown && !whole;
  const fields = fieldsText(line.fields);
  return (
    <span className={css.message}>
      {pieces(isLong ? line.message.slice(0, messageShown) : line.message).map((piece, at) => (
        <span
          // biome-ignore lint/suspicious/noArrayIndexKey: pieces of one text have no other name.
          key={at}
          data-colour={piece.colour ?? undefined}
          className={`${piece.bold ? css.bold : ""} ${piece.faint ? css.faint : ""} ${piece.underlined ? css.underlined : ""}`}
        >
          <Marked text={piece.text} find={find} />
        </span>
      ))}
      {isLong && (
        <button type="button" className={css.more} onClick={() => setWhole(true)}>
          {t("tree.rest", { n: line.message.length - messageShown })}
        </button>
      )}
      {fields !== "" && (
        <span className={css.fields}>
          {" "}
          <Marked text={fields.length > messageShown ? `${fields.slice(0, messageShown)}…` : fields} find={find} />
        </span>
      )}
    </span>
  );
}

function Marked({ text, find }: { text: string; find: string }) {
  if (find === "") return text;
  const parts: { text: string; hit: boolean }[] = [];
  const [low, wanted] = [text.toLowerCase(), find.toLowerCase()];
  let from = 0;
  for (let at = low.indexOf(wanted); at >= 0; at = low.indexOf(wanted, from)) {
    parts.push({ text: text.slice(from, at), hit: false }, { text: text.slice(at, at + wanted.length), hit: true });
    from = at + wanted.length;
  }
  parts.push({ text: text.slice(from), hit: false });
  // biome-ignore lint/suspicious/noArrayIndexKey: parts of one text have no other name.
  return parts.map((part, at) => <Fragment key={at}>{part.hit ? <mark>{part.text}</mark> : part.text}</Fragment>);
}
