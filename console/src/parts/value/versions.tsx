import type { ReactNode } from "react";
import { useWords } from "../../messages/words.ts";
import { Moment } from "./moment.tsx";
import { plain } from "./plain.ts";
import css from "./versions.module.css";

/** In a form that was filled from an older version: what is saved from it undoes nothing that came since, it is refused. */
export function Meanwhile({ version }: { version: number }) {
  const { t } = useWords();
  return (
    <p className={css.meanwhile} role="status">
      {t("versions.meanwhile", { version: String(version) })}
    </p>
  );
}

/** Of what is kept in versions: an item for each. */
export function VersionList({ children }: { children: ReactNode }) {
  return <ul className={css.versions}>{children}</ul>;
}

/** Who made it, when and why; pressed, it is the one that is looked at. */
export function VersionButton({
  version,
  made,
  isPresent,
  isChosen,
  onChoose,
}: {
  version: number;
  /** Undefined until it is known. */
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
