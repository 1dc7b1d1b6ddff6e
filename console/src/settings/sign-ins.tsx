import { Button } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { outdate } from "../api/answers.ts";
import { type Answer, call } from "../api/call.ts";
import { useWords } from "../messages/words.ts";
import { Tag } from "../parts/state/mark.tsx";
import { Nothing, Shown, Trouble } from "../parts/state/notice.tsx";
import { toast } from "../parts/state/toasts.tsx";
import { More } from "../parts/table/more.tsx";
import { usePages } from "../parts/table/pages.ts";
import { Away } from "../parts/value/moment.tsx";
import { plain } from "../parts/value/plain.ts";
import { browserOf } from "./browser-of.ts";
import css from "./settings.module.css";

type SignIn = Answer<"listSignIns">["items"][number];

/** In which browsers one is signed in; each can be ended here. A token's page has none of its own. */
export function SignIns() {
  const { t } = useWords();
  const signIns = usePages("listSignIns", { limit: 50 });
  return (
    <Shown of={signIns} rows={2}>
      {(items) =>
        items.length === 0 ? (
          <Nothing title={t("settings.noSignIns")} />
        ) : (
          <>
            <ul className={css.signIns}>
              {items.map((one) => (
                <li key={one.signIn}>
                  <One signIn={one} />
                </li>
              ))}
            </ul>
            <More of={signIns} tight />
            {items.some(({ present }) => !present) && <EndOthers />}
          </>
        )
      }
    </Shown>
  );
}

function EndOthers() {
  const { t } = useWords();
  const end = useMutation({
    mutationFn: () => call("endOtherSignIns", {}),
    onSuccess: ({ ended }) => toast({ text: t("settings.othersEnded", { n: ended }) }),
    onSettled: () => outdate("listSignIns"),
  });
  return (
    <>
      {end.error && <Trouble error={end.error} small />}
      <Button variant="default" loading={end.isPending} onClick={() => end.mutate()}>
        {t("settings.endOthers")}
      </Button>
    </>
  );
}

function One({ signIn: { signIn, begun, seen, address, agent, present } }: { signIn: SignIn }) {
  const { t } = useWords();
  const end = useMutation({
    mutationFn: () => call("endSignIn", { signIn }),
    onSuccess: () => toast({ text: t("settings.signInEnded") }),
    onSettled: () => outdate("listSignIns"),
  });
  return (
    <div className={css.signIn}>
      <div>
        <b title={plain(agent ?? "")}>{browserOf(agent) ?? t("settings.unknownBrowser")}</b>{" "}
        {present && <Tag tone="run">{t("settings.thisBrowser")}</Tag>}
        <small>
          {plain(address ?? "–")} · {t("settings.begun")} <Away at={begun} /> · {t("settings.seen")} <Away at={seen} />
        </small>
        {end.error && <Trouble error={end.error} small />}
      </div>
      {!present && (
        <Button
          size="compact-sm"
          variant="default"
          loading={end.isPending}
          aria-label={t("settings.endSignInOf", { number: signIn })}
          onClick={() => end.mutate()}
        >
          {t("settings.endSignIn")}
        </Button>
      )}
    </div>
  );
}
