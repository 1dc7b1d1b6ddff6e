import { encodedText, storedKey } from "carillon/task";
import { useWords } from "../messages/words.ts";
import { Tree } from "../parts/value/tree.tsx";

/**
 * Shows a payload or a result. If a codec has encoded it, or it is stored outside the store, only processes with the key can read
 * it.
 */
export function Kept({ value, label }: { value: unknown; label: string }) {
  const { t } = useWords();
  const key = storedKey(value);
  if (key !== undefined) return <span className="soft">{t("run.outside", { key })}</span>;
  const encoded = encodedText(value);
  if (encoded === undefined) return <Tree value={value} label={label} />;
  return <span className="soft">{t("run.encrypted", { n: encoded.length })}</span>;
}
