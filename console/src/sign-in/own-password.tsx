import { useWords } from "../messages/words.ts";
import { Password } from "../settings/password.tsx";
import { First } from "./first.tsx";

/** For whoever signed in with a password that was handed over: the server answers nothing else until it is replaced. */
export function OwnPassword({ user }: { user: string }) {
  const { t } = useWords();
  return (
    <First title={t("signIn.own")} told={t("signIn.ownTold", { user })}>
      <Password />
    </First>
  );
}
