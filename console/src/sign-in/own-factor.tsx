import { useWords } from "../messages/words.ts";
import { AddFactor } from "../settings/second-factor.tsx";
import { First } from "./first.tsx";

/** The screen of a user who must have a second factor and has none: the server answers nothing else until one is added. */
export function OwnFactor({
  user,
  isAdded,
  onAdded,
  onDone,
}: {
  user: string;
  /** It is on, and its recovery codes are still shown. */
  isAdded: boolean;
  onAdded: () => void;
  onDone: () => void;
}) {
  const { t } = useWords();
  return (
    <First title={t("factor.own")} told={t(isAdded ? "factor.ownAdded" : "factor.ownTold", { user })}>
      <AddFactor onAdded={onAdded} onDone={onDone} />
    </First>
  );
}
