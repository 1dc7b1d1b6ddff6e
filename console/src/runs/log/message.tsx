/** The text of one line, coloured by its ANSI escapes, with the search text marked. */
import { Fragment, useState } from "react";
import { useWords } from "../../messages/words.ts";
import { pieces } from "./ansi.ts";
import type { LogLine } from "./levels.ts";
import css from "./log.module.css";
import { fieldsText } from "./text.ts";

const messageShown = 4_000;

export function Message({ line, find }: { line: LogLine; find: string }) {
  const { t } = useWords();
  const [whole, setWhole] = useState(false);
  const isLong = line.message.length > messageShown && !whole;
  const fields = fieldsText(line.fields);
  return (
    <span className={css.message}>
      {pieces(isLong ? line.message.slice(0, messageShown) : line.message).map((piece, at) => (
        <span
          // biome-ignore lint/suspicious/noArrayIndexKey: the pieces of a text have no key but their position.
          key={at}
          data-colour={piece.colour ?? undefined}
          className={`${piece.bold ? css.bold : ""} ${piece.faint ? css.faint : ""} ${piece.underlined ? css.underlined : ""}`}
        >
          <Marked text={piece.text} find={find} />
        </span>
      ))}
      {isLong && (
        <button type="button" className={css.more} onClick={() => setWhole(true)}>
          {t("tree.rest", { n: line.message.length - messageShown })}
        </button>
      )}
      {fields !== "" && (
        <span className={css.fields}>
          {" "}
          <Marked text={fields.length > messageShown ? `${fields.slice(0, messageShown)}…` : fields} find={find} />
        </span>
      )}
    </span>
  );
}

function Marked({ text, find }: { text: string; find: string }) {
  if (find === "") return text;
  const parts: { text: string; hit: boolean }[] = [];
  const [low, wanted] = [text.toLowerCase(), find.toLowerCase()];
  let from = 0;
  for (let at = low.indexOf(wanted); at >= 0; at = low.indexOf(wanted, from)) {
    parts.push({ text: text.slice(from, at), hit: false }, { text: text.slice(at, at + wanted.length), hit: true });
    from = at + wanted.length;
  }
  parts.push({ text: text.slice(from), hit: false });
  // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a text have no key but their position.
  return parts.map((part, at) => <Fragment key={at}>{part.hit ? <mark>{part.text}</mark> : part.text}</Fragment>);
}
