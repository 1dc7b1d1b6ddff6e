import type { ReactNode } from "react";
import { useWords } from "../../messages/words.ts";
import { Moment } from "./moment.tsx";
import { plain } from "./plain.ts";
import css from "./versions.module.css";

/** Warns in a form that was filled from an older version. Saving is refused, because it would undo a later change. */
export function Meanwhile({ version }: { version: number }) {
  const { t } = useWords();
  return (
    <p className={css.meanwhile} role="status">
      {t("versions.meanwhile", { version: String(version) })}
    </p>
  );
}

/** A list of versions, one item for each. */
export function VersionList({ children }: { children: ReactNode }) {
  return <ul className={css.versions}>{children}</ul>;
}

/** A version's number, author, time (for the present version a word instead) and reason; pressing it selects the version. */
export function VersionButton({
  version,
  made,
  isPresent,
  isChosen,
  onChoose,
}: {
  version: number;
  /** The version's author, time and reason; undefined until they are loaded. */
  made: { author: string; changed: string; reason: string } | undefined;
  isPresent: boolean;
  isChosen: boolean;
  onChoose: () => void;
}) {
  const { t } = useWords();
  return (
    <button type="button" className={css.version} aria-pressed={isChosen} onClick={onChoose}>
      <b className="figures">{version}</b>
      <span className="cut">{made ? plain(made.author) : "…"}</span>
      <span className="soft">{isPresent ? t("versions.present") : made && <Moment at={made.changed} />}</span>
      {made && <small>{made.reason === "" ? t("versions.noReason") : plain(made.reason)}</small>}
    </button>
  );
}
