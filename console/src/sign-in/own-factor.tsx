import { useWords } from "../messages/words.ts";
import { AddFactor } from "../settings/second-factor.tsx";
import { First } from "./first.tsx";

/** The screen of a user who must add a second factor: until then the server refuses the calls of all other screens. */
export function OwnFactor({
  user,
  isAdded,
  onAdded,
  onDone,
}: {
  user: string;
  /** True while the second factor is active but its recovery codes are still shown. */
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
