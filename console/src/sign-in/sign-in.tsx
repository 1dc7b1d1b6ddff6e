import { Button, PasswordInput, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { answers } from "../api/answers.ts";
import { call } from "../api/call.ts";
import bell from "../bell.svg";
import { useWords } from "../messages/words.ts";
import { Trouble } from "../parts/notice.tsx";
import { Choices } from "../shell/choices.tsx";
import css from "./sign-in.module.css";

export function SignIn() {
  const { t } = useWords();
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  useEffect(() => {
    document.title = `${t("signIn.title")} · Carillon`;
  }, [t]);
  const signIn = useMutation({
    mutationFn: () => call("signIn", { name, password }),
    onSuccess: (me) => {
      // What somebody else saw before is not shown to this one.
      answers.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== "getMe" });
      answers.setQueryData(["getMe", {}], me);
    },
    onError: () => setPassword(""),
  });
  return (
    <main className={css.place}>
      <form
        className={css.form}
        onSubmit={(event) => {
          event.preventDefault();
          signIn.mutate();
        }}
      >
        <img src={bell} width={44} height={44} alt="" />
        <h1>{t("signIn.title")}</h1>
        <p className="soft">{t("signIn.lead")}</p>
        <TextInput
          label={t("signIn.name")}
          name="username"
          autoComplete="username"
          required
          autoFocus
          withAsterisk={false}
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <PasswordInput
          label={t("signIn.password")}
          name="password"
          autoComplete="current-password"
          required
          withAsterisk={false}
          value={password}
          onChange={(event) => setPassword(event.currentTarget.value)}
          visibilityToggleButtonProps={{ "aria-label": t("signIn.show") }}
        />
        {signIn.error && <Trouble error={signIn.error} small />}
        <Button type="submit" size="md" loading={signIn.isPending} fullWidth>
          {t("signIn.act")}
        </Button>
        <details className={css.first}>
          <summary>{t("signIn.first")}</summary>
          <p>{t("signIn.firstTold")}</p>
          <code>carillon users password admin</code>
        </details>
      </form>
      <div className={css.choices}>
        <Choices />
      </div>
    </main>
  );
}
