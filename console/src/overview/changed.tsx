import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useAnswer } from "../api/answers.ts";
import { catalogues, type Message, useWords, type Words } from "../messages/words.ts";
import { OperationLink } from "../operations/filter-text.tsx";
import { Nothing, Shown } from "../parts/state/notice.tsx";
import { AnchoredList } from "../parts/table/anchored-list.tsx";
import { Away } from "../parts/value/moment.tsx";
import css from "./overview.module.css";

const listed = 8;

/** The latest changes: from the audit log if the user may read it (`audit`), otherwise the latest operations. */
export function Changed({ audit }: { audit: boolean }) {
  return audit ? <Audit /> : <Operations />;
}

/**
 * Returns the text of a word of the audit log in the viewer's language. A word without a text, from a server of another version,
 * is returned as it is.
 */
function said(t: Words["t"], part: "act" | "one", word: string): string {
  const message = `audit.${part}.${word.replaceAll(/[ -]/g, "_")}` as Message;
  return message in catalogues.en ? t(message) : word;
}

/** The newest items as a list of short lines, each with its age. */
function Newest<Item>({ items, keyOf, atOf, children }: Listed<Item>) {
  const { t } = useWords();
  if (items.length === 0) return <Nothing title={t("overview.noChanges")} />;
  return (
    <AnchoredList rows={items} keyOf={keyOf} byTouch={false}>
      {(rows) => (
        <ul className={css.rows}>
          {rows.slice(0, listed).map((item) => (
            <li key={keyOf(item)} className={css.changed}>
              {children(item)}
              <span className="soft">
                <Away at={atOf(item)} past />
              </span>
            </li>
          ))}
        </ul>
      )}
    </AnchoredList>
  );
}

interface Listed<Item> {
  items: Item[];
  keyOf: (item: Item) => string;
  atOf: (item: Item) => string;
  children: (item: Item) => ReactNode;
}

function Audit() {
  const { t } = useWords();
  const entries = useAnswer("listAudit", { limit: listed }, { everyMs: 15_000 });
  return (
    <Shown of={entries}>
      {({ items }) => (
        <Newest items={items} keyOf={({ entry }) => String(entry)} atOf={({ at }) => at}>
          {({ entry, who, act, about, named, why }) => (
            <Link to="/audit" search={{ entry: String(entry) }} className={`cut ${css.entry}`} title={why}>
              <b>{who}</b> {said(t, "act", act)} {said(t, "one", about)} <b>{named}</b>
            </Link>
          )}
        </Newest>
      )}
    </Shown>
  );
}

function Operations() {
  const { t } = useWords();
  const operations = useAnswer("listOperations", { limit: listed }, { everyMs: 15_000 });
  return (
    <Shown of={operations}>
      {({ items }) => (
        <Newest items={items} keyOf={({ operation }) => String(operation)} atOf={({ created }) => created}>
          {({ operation, kind, author, state, total }) => (
            <span className="cut">
              <OperationLink operation={operation}>
                {author} {t(`operation.kind.${kind}`)} {total}
              </OperationLink>{" "}
              · {t(`operation.${state}`)}
            </span>
          )}
        </Newest>
      )}
    </Shown>
  );
}
