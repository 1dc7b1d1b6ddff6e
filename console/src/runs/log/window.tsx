import { useWords } from "../../messages/words.ts";
import type { LogLine } from "./levels.ts";
import css from "./log.module.css";
import { Message } from "./message.tsx";
import type { View } from "./view.ts";

/** The lines of a log; only those in view are in the DOM. */
export function Window({
  lines,
  view,
  find,
  hit,
}: {
  lines: LogLine[];
  view: View;
  find: string;
  hit: LogLine | undefined;
}) {
  const words = useWords();
  const { t } = words;
  return (
    <div
      ref={view.place}
      className={css.place}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable area must be reachable by keyboard.
      tabIndex={0}
      role="log"
      aria-label={t("log.title")}
      aria-live="off"
      onScroll={view.onScroll}
      onKeyDown={({ key, ctrlKey, metaKey }) => {
        if (key === "Home" || (key === "ArrowUp" && (ctrlKey || metaKey))) view.to("start");
        else if (key === "End" || (key === "ArrowDown" && (ctrlKey || metaKey))) view.to("end");
      }}
    >
      <div style={{ height: view.virtual.getTotalSize(), position: "relative" }}>
        {view.items.map(({ index, key, start }) => {
          const line = lines[index];
          return (
            line && (
              <div
                key={key}
                ref={view.virtual.measureElement}
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
  );
}
