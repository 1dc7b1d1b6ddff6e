import { Button, Checkbox, SegmentedControl, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { IconArrowBarToDown, IconArrowBarToUp, IconArrowDown, IconArrowUp, IconSearch } from "@tabler/icons-react";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { Fragment, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { useWords } from "../messages/words.ts";
import { useTyped } from "../parts/filters.tsx";
import { Trouble, Waiting } from "../parts/notice.tsx";
import { usePages } from "../parts/pages.ts";
import type { Filter } from "../router.tsx";
import { bare, pieces } from "./ansi.ts";
import css from "./log.module.css";
import { type Level, type LogLine, levels, useLogLines } from "./log-lines.ts";

const lineHeight = 22;
/** So many lines before an edge of what is read, what lies behind it is read. */
const nearEdge = 150;
const foundAtOnce = 500;
const messageShown = 4_000;

export function Log({ run, live }: { run: number; live: boolean }) {
  const words = useWords();
  const { t } = words;
  const search = useSearch({ from: "/runs/$run" });
  const navigate = useNavigate({ from: "/runs/$run" });
  const set = (change: Filter) =>
    void navigate({ search: (before: Filter) => ({ ...before, ...change }), replace: true });
  const least: Level = levels.find((level) => level === search.level) ?? "debug";
  const [find, setFind] = useTyped(search.find ?? "", 180, (find) => set({ find }));
  const { lines, before, after, reading, grow, jump, error, again } = useLogLines(run, live, least);
  const [follows, setFollows] = useState(live);
  const [at, setAt] = useState(0);
  const place = useRef<HTMLDivElement>(null);
  const found = useFound(run, live, least, find, { lines, isWhole: !before && !after && !reading });
  const hit = found.hits[Math.min(at, found.hits.length - 1)];
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => place.current,
    estimateSize: () => lineHeight,
    overscan: 20,
    getItemKey: (index) => lines[index]?.id ?? index,
  });
  const items = virtual.getVirtualItems();
  const [first, last] = [items[0]?.index ?? 0, items.at(-1)?.index ?? 0];
  useEffect(() => {
    if (reading || lines.length === 0 || error !== undefined) return;
    if (after && last >= lines.length - nearEdge) grow("after");
    else if (before && first < nearEdge) grow("before");
  }, [reading, error, after, before, first, last, lines.length, grow]);
  // Lines that come before those that are read, or go, must not move them.
  const shown = useRef<LogLine[]>([]);
  useLayoutEffect(() => {
    const known = shown.current;
    shown.current = lines;
    const [was, is] = [known[0]?.id, lines[0]?.id];
    if (!place.current || was === undefined || is === undefined || was === is) return;
    const came = lines.findIndex(({ id }) => id === was);
    const went = came > 0 ? 0 : known.findIndex(({ id }) => id === is);
    if (came > 0 || went > 0) place.current.scrollTop += (Math.max(0, came) - Math.max(0, went)) * lineHeight;
  }, [lines]);
  useEffect(() => {
    if (follows && lines.length > 0) virtual.scrollToIndex(lines.length - 1, { align: "end" });
  }, [follows, lines.length, virtual]);
  /** Where one wants to be, once it is read. */
  const [wanted, setWanted] = useState<"start" | "end" | string>();
  const to = (target: "start" | "end" | LogLine) => {
    const id = typeof target === "object" ? target.id : target;
    setWanted(id);
    const isThere = id === "start" ? !before : id === "end" ? !after : lines.some((line) => line.id === id);
    if (!isThere) jump(target);
    setFollows(live && id === "end");
  };
  useEffect(() => {
    if (wanted === undefined || reading || lines.length === 0) return;
    const index =
      wanted === "start" ? 0 : wanted === "end" ? lines.length - 1 : lines.findIndex(({ id }) => id === wanted);
    if (index >= 0)
      virtual.scrollToIndex(index, { align: wanted === "start" ? "start" : wanted === "end" ? "end" : "center" });
    setWanted(undefined);
  }, [wanted, reading, lines, virtual]);
  const goTo = useRef(to);
  goTo.current = to;
  const hitId = hit?.id;
  // biome-ignore lint/correctness/useExhaustiveDependencies: one goes there when it is another, not whenever more is read.
  useEffect(() => {
    if (hit) goTo.current(hit);
  }, [hitId]);
  const go = (step: number) => {
    const { hits, more, onMore } = found;
    if (hits.length === 0) return;
    const next = Math.min(at, hits.length - 1) + step;
    if (next >= hits.length && more) return onMore();
    setAt((next + hits.length) % hits.length);
    if (hits.length === 1 && hits[0]) to(hits[0]);
  };
  const onScroll = () => {
    const element = place.current;
    // Who scrolls up wants to read; who comes back to the end wants to follow.
    if (element && live && !after)
      setFollows(element.scrollHeight - element.scrollTop - element.clientHeight < lineHeight * 2);
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
            setFind(event.currentTarget.value);
          }}
          onKeyDown={(event) => {
            if (event.key === "Enter") go(event.shiftKey ? -1 : 1);
          }}
        />
        {find !== "" && (
          <>
            <span className="soft figures" role="status">
              {hit
                ? t("log.hits", { at: found.hits.indexOf(hit) + 1, n: found.hits.length }) + (found.more ? "+" : "")
                : t(found.isLooking ? "log.looking" : "log.noHit")}
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
          {t("log.lines", { n: before || after ? `${words.count(lines.length)}+` : lines.length })}
        </span>
        <Button.Group>
          <Button variant="default" px={8} aria-label={t("log.toStart")} onClick={() => to("start")}>
            <IconArrowBarToUp size={15} />
          </Button>
          <Button variant="default" px={8} aria-label={t("log.toEnd")} onClick={() => to("end")}>
            <IconArrowBarToDown size={15} />
          </Button>
        </Button.Group>
      </search>
      {error !== undefined && (
        <div className={css.trouble}>
          <Trouble error={error} again={again} small />
        </div>
      )}
      {lines.length === 0 ? (
        reading ? (
          <Waiting rows={4} height={14} />
        ) : (
          error === undefined && (
            <p className={css.told}>
              {least !== "debug" ? t("log.noneOfLevel") : live ? t("log.noneYet") : t("log.none")}
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
          onKeyDown={({ key, ctrlKey, metaKey }) => {
            if (key === "Home" || (key === "ArrowUp" && (ctrlKey || metaKey))) to("start");
            else if (key === "End" || (key === "ArrowDown" && (ctrlKey || metaKey))) to("end");
          }}
        >
          <div style={{ height: virtual.getTotalSize(), position: "relative" }}>
            {items.map(({ index, key, start }) => {
              const line = lines[index];
              return (
                line && (
                  <div
                    key={key}
                    ref={virtual.measureElement}
                    data-index={index}
                    data-level={line.level}
                    className={css.line}
                    data-hit={hit?.id === line.id || undefined}
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

/** The lines with a text in them: those of the window where that is the whole log; else the server looks. */
function useFound(
  run: number,
  live: boolean,
  least: Level,
  find: string,
  { lines, isWhole }: { lines: LogLine[]; isWhole: boolean },
) {
  const [settled] = useDebouncedValue(find.trim(), 200);
  const asks = settled !== "" && lines.length > 0 && !isWhole;
  const given = { run, find: settled || " ", limit: foundAtOnce, ...(least === "debug" ? {} : { level: least }) };
  const asked = usePages("listLogs", given, { enabled: asks, ...(live ? { everyMs: 5_000 } : {}) });
  const here = useMemo(() => {
    const wanted = find.trim().toLowerCase();
    return wanted === "" || !isWhole ? [] : lines.filter((line) => textOf(line).toLowerCase().includes(wanted));
  }, [lines, find, isWhole]);
  if (!asks)
    return { hits: here, more: false, onMore: () => undefined, isLooking: find.trim() !== settled && !isWhole };
  const isLooking = asked.data === undefined || asked.stale;
  return { hits: isLooking ? [] : (asked.data ?? []), more: asked.more, onMore: asked.onMore, isLooking };
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
