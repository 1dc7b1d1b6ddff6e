import { Link } from "@tanstack/react-router";
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

function Audit() {
  const { t } = useWords();
  const entries = useAnswer("listAudit", { limit: listed }, { everyMs: 15_000 });
  return (
    <Shown of={entries}>
      {({ items }) =>
        items.length === 0 ? (
          <Nothing title={t("overview.noChanges")} />
        ) : (
          <AnchoredList rows={items} keyOf={({ entry }) => String(entry)} byTouch={false}>
            {(rows) => (
              <ul className={css.rows}>
                {rows.slice(0, listed).map(({ entry, at, who, act, about, named, why }) => (
                  <li key={entry} className={css.changed}>
                    <Link to="/audit" search={{ entry: String(entry) }} className={`cut ${css.entry}`} title={why}>
                      <b>{who}</b> {said(t, "act", act)} {said(t, "one", about)} <b>{named}</b>
                    </Link>
                    <span className="soft">
                      <Away at={at} past />
                    </span>
                  </li>
                ))}
              </ul>
            )}
          </AnchoredList>
        )
      }
    </Shown>
  );
}

function Operations() {
  const { t } = useWords();
  const operations = useAnswer("listOperations", { limit: listed }, { everyMs: 15_000 });
  return (
    <Shown of={operations}>
      {({ items }) =>
        items.length === 0 ? (
          <Nothing title={t("overview.noChanges")} />
        ) : (
          <AnchoredList rows={items} keyOf={({ operation }) => String(operation)} byTouch={false}>
            {(rows) => (
              <ul className={css.rows}>
                {rows.slice(0, listed).map(({ operation, kind, author, state, total, created }) => (
                  <li key={operation} className={css.changed}>
                    <span className="cut">
                      <OperationLink operation={operation}>
                        {author} {t(`operation.kind.${kind}`)} {total}
                      </OperationLink>{" "}
                      · {t(`operation.${state}`)}
                    </span>
                    <span className="soft">
                      <Away at={created} past />
                    </span>
                  </li>
                ))}
              </ul>
            )}
          </AnchoredList>
        )
      }
    </Shown>
  );
}
