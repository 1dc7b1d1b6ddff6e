import { encodedText, storedKey } from "carillon/task";
import { useWords } from "../messages/words.ts";
import { Tree } from "../parts/value/tree.tsx";

/**
 * Shows a payload or a result as a tree. A value that a codec has encoded, or that is stored outside the database, cannot be shown
 * here: a text gives its size or its key instead.
 */
export function Kept({ value, label }: { value: unknown; label: string }) {
  const { t } = useWords();
  const key = storedKey(value);
  if (key !== undefined) return <span className="soft">{t("run.outside", { key })}</span>;
  const encoded = encodedText(value);
  if (encoded === undefined) return <Tree value={value} label={label} />;
  return <span className="soft">{t("run.encrypted", { n: encoded.length })}</span>;
}
