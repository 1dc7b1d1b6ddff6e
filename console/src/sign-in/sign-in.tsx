import { Button, PasswordInput, TextInput } from "@mantine/core";
import { IconLogin2 } from "@tabler/icons-react";
import { useMutation } from "@tanstack/react-query";
import { useEffect, useLayoutEffect, useRef, useState } from "react";
import { answers, useAnswer } from "../api/answers.ts";
import { basePath, isFramed } from "../api/base.ts";
import { call, isRefusal } from "../api/call.ts";
import bell from "../bell.svg";
import { tryNow } from "../live/standing.ts";
import { useWords } from "../messages/words.ts";
import { Trouble } from "../parts/state/notice.tsx";
import { CodeInput } from "../settings/second-factor.tsx";
import { Choices } from "../shell/choices.tsx";
import { forgetRefusal, keepPlace, readRefusal } from "./provided.ts";
import css from "./sign-in.module.css";

/**
 * The sign-in in front of the page of a user whose sign-in ended. A modal dialog keeps clicks and focus away from the page behind
 * it, including the page's own dialogs.
 */
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
  /** undefined until the server asks for a code. */
  const [code, setCode] = useState<string>();
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
  const forget = () => {
    setPassword("");
    setCode(undefined);
  };
  const signIn = useMutation({
    mutationFn: () => call("signIn", { name, password, code: code?.trim() }),
    onSuccess: (me) => {
      answers.setQueryData(["getMe", {}], me);
      // Refetches the data of the page behind the dialog, because its requests were refused while the user was not signed in.
      void answers.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== "getMe" });
      tryNow();
    },
    onError: (error) => {
      // The password was correct; the server also needs a code.
      const isCode = ["SECOND_FACTOR_NEEDED", "CODE_REFUSED"].some((one) => isRefusal(error, one));
      if (isCode) setCode("");
      else if (code === undefined || isRefusal(error, "SIGN_IN_REFUSED")) forget();
    },
  });
  const asksCode = code !== undefined;
  // The server's request for a code is the next step, not a failure.
  const failure = isRefusal(signIn.error, "SECOND_FACTOR_NEEDED") ? null : signIn.error;
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
        <p className="soft">{asksCode ? t("signIn.codeTold", { user: name }) : t("signIn.lead")}</p>
        {refused && !signIn.error && (
          <div role="alert" className={css.refused}>
            <b>{t(`provided.${refused.code}`)}</b>
            {refused.why && <span>{t(`provided.why.${refused.why}`)}</span>}
          </div>
        )}
        {provider && !asksCode && <ByProvider {...provider} />}
        {asksCode ? (
          <CodeInput label={t("signIn.code")} told={t("signIn.codeHint")} focused value={code} onChange={setCode} />
        ) : (
          <>
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
          </>
        )}
        {failure && <Trouble error={failure} small />}
        <Button
          type="submit"
          size="md"
          loading={signIn.isPending}
          fullWidth
          {...(provider && !asksCode ? { variant: "default" } : {})}
        >
          {t("signIn.act")}
        </Button>
        {asksCode ? (
          <Button
            variant="subtle"
            onClick={() => {
              forget();
              signIn.reset();
            }}
          >
            {t("signIn.other")}
          </Button>
        ) : (
          <FirstTime />
        )}
      </form>
      <div className={css.choices}>
        <Choices />
      </div>
    </main>
  );
}

interface ProviderWay {
  label: string;
  path: string;
}

/**
 * A link to the provider, which leads back to the present address after the sign-in. In a frame it opens another tab, because providers
 * refuse to be shown in frames. When the user returns from that tab, the page in the frame notices the sign-in.
 */
export function ProviderLink({ label, path }: ProviderWay) {
  const { t } = useWords();
  return (
    <Button
      component="a"
      href={`${basePath}${path}`}
      {...(isFramed ? { target: "_blank", rel: "noopener" } : {})}
      size="md"
      fullWidth
      leftSection={<IconLogin2 size={18} aria-hidden />}
      onClick={isFramed ? undefined : keepPlace}
    >
      {t("signIn.by", { provider: label })}
    </Button>
  );
}

function ByProvider(way: ProviderWay) {
  const { t } = useWords();
  return (
    <>
      <ProviderLink {...way} />
      <p className={css.or}>
        <span>{t("signIn.or")}</span>
      </p>
    </>
  );
}

function FirstTime() {
  const { t } = useWords();
  return (
    <details className={css.first}>
      <summary>{t("signIn.first")}</summary>
      <p>{t("signIn.firstTold")}</p>
      <code>carillon users create admin --role admin</code>
      <code>carillon users password admin</code>
    </details>
  );
}
