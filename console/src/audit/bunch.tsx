import { IconChevronRight } from "@tabler/icons-react";
import { useState } from "react";
import { useWords } from "../messages/words.ts";
import { plain } from "../parts/value/plain.ts";
import css from "./audit.module.css";
import { ActTag, Entry } from "./entry.tsx";
import { type AuditEntry, keyOf } from "./words.ts";

const namesShown = 3;

/** A group of similar audit entries as one line, which expands into the single entries. */
export function Bunch({ entries }: { entries: AuditEntry[] }) {
  const { t, clock, count, moment } = useWords();
  const [open, setOpen] = useState(false);
  const [{ at, who, act, about, why }] = entries as [AuditEntry];
  const ms = Date.parse(at);
  const names = [...new Set(entries.map(({ task, named }) => task ?? named))];
  const things = t(`audit.about.${keyOf(about)}` as "audit.about.run");
  return (
    <>
      <li className={css.entry} data-open={open || undefined}>
        <button type="button" className={css.line} aria-expanded={open} onClick={() => setOpen(!open)} data-row>
          <IconChevronRight size={15} aria-hidden className={css.turn} />
          <time dateTime={at} title={moment(ms)} className={`${css.time} figures`}>
            {clock(ms)}
          </time>
          <span className={css.what}>
            <b>{plain(who)}</b> <ActTag act={act} /> <b>{t("audit.many", { count: count(entries.length), things })}</b>
            <span className={css.parts}>
              {names.slice(0, namesShown).map(plain).join(", ")}
              {names.length > namesShown && ` ${t("bulk.andMore", { n: names.length - namesShown })}`}
            </span>
          </span>
          {why !== "" && <span className={css.why}>{plain(why)}</span>}
        </button>
      </li>
      {open && entries.map((entry) => <Entry key={entry.entry} entry={entry} isOpen={false} />)}
    </>
  );
}
