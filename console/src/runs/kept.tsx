import { encodedText } from "carillon/task";
import { useWords } from "../messages/words.ts";
import { Tree } from "../parts/value/tree.tsx";

/** A payload or a result: only processes with the key can read one that a codec has encoded. */
export function Kept({ value, label }: { value: unknown; label: string }) {
  const { t } = useWords();
  const encoded = encodedText(value);
  if (encoded === undefined) return <Tree value={value} label={label} />;
  return <span className="soft">{t("run.encrypted", { n: encoded.length })}</span>;
}
