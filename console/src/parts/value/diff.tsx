import { useState } from "react";
import { useWords } from "../../messages/words.ts";
import css from "./diff.module.css";
import { type Difference, differences } from "./differences.ts";
import { plain } from "./plain.ts";
import { InWords } from "./told.tsx";

const shownAtFirst = 40;
const textShown = 4_000;

/**
 * The differences between two JSON values; each part is shown with its old and its new value.
 * @param nameOf the viewer's word for a part, which is shown above the part's own name
 */
export function Diff({
  was,
  is,
  label,
  nameOf,
}: {
  was: unknown;
  is: unknown;
  label: string;
  nameOf?: (part: string) => string | undefined;
}) {
  const { t } = useWords();
  const [shown, setShown] = useState(shownAtFirst);
  const found = differences(was, is);
  if (found.length === 0) return <p className="soft">{t("versions.same")}</p>;
  return (
    <section className={css.diff} aria-label={label}>
      {found.slice(0, shown).map((one) => (
        <One key={one.part} {...one} name={nameOf?.(one.part)} />
      ))}
      {found.length > shown && (
        <button type="button" className={css.more} onClick={() => setShown(found.length)}>
          {t("tree.rest", { n: found.length - shown })}
        </button>
      )}
    </section>
  );
}

function One({ part, was, is, name }: Difference & { name: string | undefined }) {
  const { t } = useWords();
  return (
    <div className={css.part}>
      {part !== "" && (
        <span className={css.name}>
          {name !== undefined && <b className={css.word}>{name}</b>}
          {plain(part)}
        </span>
      )}
      <div className={css.values}>
        {was !== undefined && was !== null && (
          <del className={css.was}>
            <span className="unseen">{t("versions.was")} </span>
            {textOf(was)}
            <InWords value={was} />
          </del>
        )}
        {is !== undefined && is !== null && (
          <ins className={css.is}>
            <span className="unseen">{t("versions.is")} </span>
            {textOf(is)}
            <InWords value={is} />
          </ins>
        )}
      </div>
    </div>
  );
}

/**
 * Formats a value for display: a text as it is, a list of plain values with commas, any other value as JSON, an empty result as `""`.
 * Long texts are cut.
 */
function textOf(value: unknown): string {
  const isList = Array.isArray(value) && value.every((one) => typeof one !== "object" || one === null);
  const text =
    typeof value === "string" ? value : isList ? value.map(String).join(", ") : (JSON.stringify(value, null, 2) ?? "");
  const cut = text.length > textShown ? `${text.slice(0, textShown)}…` : text;
  return plain(cut === "" ? '""' : cut);
}
