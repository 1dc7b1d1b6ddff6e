/** Any JSON value as a tree that the user can expand. Long values are cut at first; the whole value can be copied. */
import { ActionIcon, CopyButton } from "@mantine/core";
import { IconCheck, IconChevronRight, IconCopy } from "@tabler/icons-react";
import { useState } from "react";
import { useWords } from "../../messages/words.ts";
import { plain } from "./plain.ts";
import { InWords } from "./told.tsx";
import css from "./tree.module.css";

const shownAtFirst = 100;
const openToDepth = 2;
const textShown = 2_000;

export function Tree({ value, label }: { value: unknown; label: string }) {
  const { t } = useWords();
  return (
    <section className={css.tree} aria-label={label}>
      <CopyButton value={JSON.stringify(value, null, 2) ?? ""}>
        {({ copied, copy }) => (
          <ActionIcon
            className={css.copy}
            variant="default"
            size={28}
            aria-label={t(copied ? "act.copied" : "act.copy")}
            onClick={copy}
          >
            {copied ? <IconCheck size={15} /> : <IconCopy size={15} />}
          </ActionIcon>
        )}
      </CopyButton>
      <Value value={value} depth={0} />
    </section>
  );
}

function Value({ value, depth }: { value: unknown; depth: number }) {
  if (typeof value === "object" && value !== null) return <Branch value={value} depth={depth} />;
  return <Leaf value={value} />;
}

function Leaf({ value }: { value: unknown }) {
  const { t } = useWords();
  const [whole, setWhole] = useState(false);
  if (typeof value !== "string")
    return <span className={css[value === null ? "null" : typeof value] ?? ""}>{String(value)}</span>;
  const isLong = value.length > textShown && !whole;
  return (
    <span className={css.string}>
      {plain(JSON.stringify(isLong ? value.slice(0, textShown) : value))}
      <InWords value={value} />
      {isLong && (
        <button type="button" className={css.more} onClick={() => setWhole(true)}>
          {t("tree.rest", { n: value.length - textShown })}
        </button>
      )}
    </span>
  );
}

function Branch({ value, depth }: { value: object; depth: number }) {
  const { t } = useWords();
  const [open, setOpen] = useState(depth < openToDepth);
  const [shown, setShown] = useState(shownAtFirst);
  const isList = Array.isArray(value);
  const entries = Object.entries(value);
  const [left, right] = isList ? ["[", "]"] : ["{", "}"];
  if (entries.length === 0) return <span className={css.bracket}>{`${left}${right}`}</span>;
  return (
    <>
      <button type="button" className={css.toggle} aria-expanded={open} onClick={() => setOpen(!open)}>
        <IconChevronRight size={13} aria-hidden className={open ? css.opened : undefined} />
        <span className={css.bracket}>{left}</span>
        {!open && <span className={css.count}>{t(isList ? "tree.items" : "tree.fields", { n: entries.length })}</span>}
        {!open && <span className={css.bracket}>{right}</span>}
      </button>
      {open && (
        <ul className={css.entries}>
          {entries.slice(0, shown).map(([name, one]) => (
            <li key={name}>
              <span className={isList ? css.index : css.key}>{plain(name)}</span>
              <span className={css.colon}>: </span>
              <Value value={one} depth={depth + 1} />
            </li>
          ))}
          {entries.length > shown && (
            <li>
              <button type="button" className={css.more} onClick={() => setShown(shown + 10 * shownAtFirst)}>
                {t("tree.rest", { n: entries.length - shown })}
              </button>
            </li>
          )}
        </ul>
      )}
      {open && <span className={css.bracket}>{right}</span>}
    </>
  );
}
