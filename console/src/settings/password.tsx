import { Button, PasswordInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { outdate } from "../api/answers.ts";
import { call } from "../api/call.ts";
import { useWords } from "../messages/words.ts";
import { Trouble } from "../parts/state/notice.tsx";
import { toast } from "../parts/state/toasts.tsx";
import css from "./settings.module.css";

/** The form to change the user's own password, which requires the current one. @param heading above the form */
export function Password({ heading }: { heading?: string }) {
  const { t } = useWords();
  const [present, setPresent] = useState("");
  const [next, setNext] = useState("");
  const change = useMutation({
    mutationFn: () => call("changePassword", { present, next }),
    onSuccess: () => {
      setPresent("");
      setNext("");
      toast({ text: t("settings.passwordDone") });
      outdate("getMe");
    },
  });
  return (
    <form
      className={css.form}
      onSubmit={(event) => {
        event.preventDefault();
        change.mutate();
      }}
    >
      {heading !== undefined && <h3 className={css.sub}>{heading}</h3>}
      <PasswordInput
        label={t("settings.presentPassword")}
        autoComplete="current-password"
        required
        withAsterisk={false}
        value={present}
        onChange={(event) => setPresent(event.currentTarget.value)}
        visibilityToggleButtonProps={{ "aria-label": t("signIn.show") }}
      />
      <PasswordInput
        label={t("settings.nextPassword")}
        description={t("settings.passwordTold")}
        autoComplete="new-password"
        required
        withAsterisk={false}
        value={next}
        onChange={(event) => setNext(event.currentTarget.value)}
        visibilityToggleButtonProps={{ "aria-label": t("signIn.show") }}
      />
      {change.error && <Trouble error={change.error} small />}
      <Button type="submit" variant="default" loading={change.isPending} disabled={present === "" || next === ""}>
        {t("settings.passwordAct")}
      </Button>
    </form>
  );
}
