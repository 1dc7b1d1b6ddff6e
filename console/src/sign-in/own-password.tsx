import { useWords } from "../messages/words.ts";
import { Password } from "../settings/password.tsx";
import { First } from "./first.tsx";

/** The screen of a user with a temporary password: until it is replaced the server refuses the calls of all other screens. */
export function OwnPassword({ user }: { user: string }) {
  const { t } = useWords();
  return (
    <First title={t("signIn.own")} told={t("signIn.ownTold", { user })}>
      <Password />
    </First>
  );
}
