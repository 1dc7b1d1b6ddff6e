import { useState } from "react";
import { useWords } from "../messages/words.ts";
import css from "./audit.module.css";
import { AuditLine, Entry, FirstNames } from "./entry.tsx";
import { type AuditEntry, keyOf } from "./words.ts";

/** A group of similar audit entries as one line, which expands into the single entries. */
export function Bunch({ entries }: { entries: AuditEntry[] }) {
  const { t, count } = useWords();
  const [open, setOpen] = useState(false);
  const [{ at, who, act, about, why }] = entries as [AuditEntry];
  const names = [...new Set(entries.map(({ task, named }) => task ?? named))];
  const things = t(`audit.about.${keyOf(about)}` as "audit.about.run");
  return (
    <>
      <li className={css.entry} data-open={open || undefined}>
        <AuditLine at={at} who={who} act={act} why={why} isOpen={open} onTurn={() => setOpen(!open)}>
          <b>{t("audit.many", { count: count(entries.length), things })}</b>
          <FirstNames names={names} />
        </AuditLine>
      </li>
      {open && entries.map((entry) => <Entry key={entry.entry} entry={entry} isOpen={false} />)}
    </>
  );
}
