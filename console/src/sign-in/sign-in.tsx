import { Button, PasswordInput, TextInput } from "@mantine/core";
import { IconLogin2 } from "@tabler/icons-react";
import { useMutation } from "@tanstack/react-query";
import { useEffect, useLayoutEffect, useRef, useState } from "react";
import { answers, useAnswer } from "../api/answers.ts";
import { call } from "../api/call.ts";
import bell from "../bell.svg";
import { tryNow } from "../live/standing.ts";
import { useWords } from "../messages/words.ts";
import { Trouble } from "../parts/state/notice.tsx";
import { Choices } from "../shell/choices.tsx";
import { forgetRefusal, keepPlace, readRefusal } from "./provided.ts";
import css from "./sign-in.module.css";

/** Before the page of whoever was signed in. The browser keeps clicks and the focus from what lies behind it, dialogs too. */
export function SignInAgain() {
  const { t } = useWords();
  const place = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const dialog = place.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog ref={place} className={css.again} aria-label={t("signIn.title")}>
      <SignIn />
    </dialog>
  );
}

export function SignIn() {
  const { t } = useWords();
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [refused] = useState(readRefusal);
  const provider = useAnswer("howToSignIn", {}).data?.provider;
  useEffect(forgetRefusal, []);
  useEffect(() => {
    const before = document.title;
    document.title = `${t("signIn.title")} · Carillon`;
    return () => {
      document.title = before;
    };
  }, [t]);
  const signIn = useMutation({
    mutationFn: () => call("signIn", { name, password }),
    onSuccess: (me) => {
      answers.setQueryData(["getMe", {}], me);
      // Of a page that waits all was refused meanwhile; another user's is dropped by the gate.
      void answers.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== "getMe" });
      tryNow();
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
        {refused && !signIn.error && (
          <div role="alert" className={css.refused}>
            <b>{t(`provided.${refused.code}`)}</b>
            {refused.why && <span>{t(`provided.why.${refused.why}`)}</span>}
          </div>
        )}
        {provider && (
          <>
            <Button
              component="a"
              href={provider.path}
              size="md"
              fullWidth
              leftSection={<IconLogin2 size={18} aria-hidden />}
              onClick={keepPlace}
            >
              {t("signIn.by", { provider: provider.label })}
            </Button>
            <p className={css.or}>
              <span>{t("signIn.or")}</span>
            </p>
          </>
        )}
        <TextInput
          label={t("signIn.name")}
          name="username"
          autoComplete="username"
          required
          autoFocus={!provider}
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
        <Button
          type="submit"
          size="md"
          loading={signIn.isPending}
          fullWidth
          {...(provider ? { variant: "default" } : {})}
        >
          {t("signIn.act")}
        </Button>
        <details className={css.first}>
          <summary>{t("signIn.first")}</summary>
          <p>{t("signIn.firstTold")}</p>
          <code>carillon users create admin --role admin</code>
          <code>carillon users password admin</code>
        </details>
      </form>
      <div className={css.choices}>
        <Choices />
      </div>
    </main>
  );
}
