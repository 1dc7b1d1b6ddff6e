import { type CSSProperties, type ReactNode, useEffect } from "react";
import css from "./page.module.css";

/** A screen: its heading, its actions and its content. `tab`, by default the heading, is the title of the browser tab. */
export function Page({
  title,
  tab = title,
  above,
  below,
  acts,
  fill = false,
  children,
}: {
  title: ReactNode;
  tab?: ReactNode;
  above?: ReactNode;
  below?: ReactNode;
  acts?: ReactNode;
  /** True if the list scrolls instead of the whole page. */
  fill?: boolean;
  children: ReactNode;
}) {
  const text = typeof tab === "string" ? tab : "";
  useEffect(() => {
    document.title = text === "" ? "Carillon" : `${text} · Carillon`;
  }, [text]);
  return (
    <div className={css.page} data-fill={fill || undefined}>
      <div className={css.head} data-head>
        <div className={css.name}>
          {above && <div className={css.above}>{above}</div>}
          <h1 className={css.title}>{title}</h1>
          {below && <div className={css.below}>{below}</div>}
        </div>
        {acts && <div className={css.acts}>{acts}</div>}
      </div>
      {children}
    </div>
  );
}

export function Card({
  title,
  more,
  tight = false,
  children,
  className = "",
}: {
  title?: ReactNode;
  more?: ReactNode;
  tight?: boolean;
  children: ReactNode;
  className?: string | undefined;
}) {
  return (
    <section className={`${css.card} ${className}`} data-tight={tight || undefined}>
      {title !== undefined && (
        <div className={css.cardHead}>
          <h2>{title}</h2>
          {more}
        </div>
      )}
      {children}
    </section>
  );
}

/** Two columns with these shares of the width; on a narrow screen the second column is below the first. */
export function Columns({ shares: [left, right], children }: { shares: [number, number]; children: ReactNode }) {
  const style = { "--columns": `minmax(0, ${left}fr) minmax(0, ${right}fr)` } as CSSProperties;
  return (
    <div className={css.columns} style={style}>
      {children}
    </div>
  );
}

/** Names and values as a definition list, so that a screen reader reads pairs. */
export function Facts({ facts }: { facts: [name: string, value: ReactNode][] }) {
  return (
    <dl className={css.facts}>
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A container for wide content, which scrolls horizontally and can be focused by keyboard. */
export function Wide({ label, children }: { label: string; children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable area must be reachable by keyboard.
    <section className={css.wide} aria-label={label} tabIndex={0}>
      {children}
    </section>
  );
}
