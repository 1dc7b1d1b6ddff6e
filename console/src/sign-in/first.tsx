import { Button } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { call } from "../api/call.ts";
import bell from "../bell.svg";
import { useWords } from "../messages/words.ts";
import { Trouble } from "../parts/state/notice.tsx";
import css from "./sign-in.module.css";

/** A screen for a step that a user must complete before anything else; it also lets the user sign out. */
export function First({ title, told, children }: { title: string; told: string; children: ReactNode }) {
  const { t } = useWords();
  // A reload discards all data of the previous user.
  const signOut = useMutation({ mutationFn: () => call("signOut", {}), onSuccess: () => window.location.reload() });
  return (
    <main className={css.place}>
      <div className={css.form}>
        <img src={bell} width={44} height={44} alt="" />
        <h1>{title}</h1>
        <p className="soft">{told}</p>
        {children}
        {signOut.error && <Trouble error={signOut.error} small />}
        <Button variant="subtle" loading={signOut.isPending} onClick={() => signOut.mutate()}>
          {t("user.signOut")}
        </Button>
      </div>
    </main>
  );
}
