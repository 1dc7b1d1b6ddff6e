import { Button } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { call } from "../api/call.ts";
import bell from "../bell.svg";
import { useWords } from "../messages/words.ts";
import { Trouble } from "../parts/state/notice.tsx";
import { Password } from "../settings/password.tsx";
import css from "./sign-in.module.css";

/** For whoever signed in with a password that was handed over: the server answers nothing else until it is replaced. */
export function OwnPassword({ user }: { user: string }) {
  const { t } = useWords();
  // A new page remembers nothing of whoever was here.
  const signOut = useMutation({ mutationFn: () => call("signOut", {}), onSuccess: () => window.location.reload() });
  return (
    <main className={css.place}>
      <div className={css.form}>
        <img src={bell} width={44} height={44} alt="" />
        <h1>{t("signIn.own")}</h1>
        <p className="soft">{t("signIn.ownTold", { user })}</p>
        <Password />
        {signOut.error && <Trouble error={signOut.error} small />}
        <Button variant="subtle" loading={signOut.isPending} onClick={() => signOut.mutate()}>
          {t("user.signOut")}
        </Button>
      </div>
    </main>
  );
}
