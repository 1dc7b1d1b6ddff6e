import { Button } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { outdate } from "../api/answers.ts";
import { useWords } from "../messages/words.ts";
import { Tag } from "../parts/state/mark.tsx";
import { Nothing, Shown, Trouble } from "../parts/state/notice.tsx";
import { toast } from "../parts/state/toasts.tsx";
import { More } from "../parts/table/more.tsx";
import type { usePages } from "../parts/table/pages.ts";
import { Away } from "../parts/value/moment.tsx";
import { plain } from "../parts/value/plain.ts";
import { browserOf } from "./browser-of.ts";
import css from "./settings.module.css";

type Pages = ReturnType<typeof usePages<"listSignIns">>;
type SignIn = NonNullable<Pages["data"]>[number];

interface Ends {
  /** The list that becomes stale when a sign-in ends. */
  list: "listSignIns" | "listSignInsOf";
  /** Ends a sign-in, by its number. */
  end: (signIn: number) => Promise<unknown>;
  /** If true, this browser's own sign-in is marked and has no button to end it. */
  keepsOwn?: true;
}

/** A user's sign-ins, each with a button to end it, except this browser's own if `keepsOwn` is true. */
export function SignInRows({ of, ...ends }: { of: Pages } & Ends) {
  const { t } = useWords();
  return (
    <Shown of={of} rows={2}>
      {(items) =>
        items.length === 0 ? (
          <Nothing title={t("settings.noSignIns")} />
        ) : (
          <>
            <ul className={css.signIns}>
              {items.map((one) => (
                <li key={one.signIn}>
                  <One signIn={one} {...ends} />
                </li>
              ))}
            </ul>
            <More of={of} tight />
          </>
        )
      }
    </Shown>
  );
}

function One({ signIn: one, list, end, keepsOwn }: { signIn: SignIn } & Ends) {
  const { signIn, begun, seen, address, agent } = one;
  const isKept = keepsOwn === true && one.present;
  const { t } = useWords();
  const ending = useMutation({
    mutationFn: () => end(signIn),
    onSuccess: () => toast({ text: t("settings.signInEnded") }),
    onSettled: () => outdate(list),
  });
  return (
    <div className={css.signIn}>
      <div>
        <b title={plain(agent ?? "")}>{browserOf(agent) ?? t("settings.unknownBrowser")}</b>{" "}
        {isKept && <Tag tone="run">{t("settings.thisBrowser")}</Tag>}
        <small>
          {plain(address ?? "–")} · {t("settings.begun")} <Away at={begun} past /> · {t("settings.seen")}{" "}
          <Away at={seen} past />
        </small>
        {ending.error && <Trouble error={ending.error} small />}
      </div>
      {!isKept && (
        <Button
          size="compact-sm"
          variant="default"
          loading={ending.isPending}
          aria-label={t("settings.endSignInOf", { number: signIn })}
          onClick={() => ending.mutate()}
        >
          {t("settings.endSignIn")}
        </Button>
      )}
    </div>
  );
}
