import { Button } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { outdate } from "../api/answers.ts";
import { type Answer, call } from "../api/call.ts";
import { useWords } from "../messages/words.ts";
import { Confirm } from "../parts/form/confirm.tsx";
import { Nothing, Shown, Trouble } from "../parts/state/notice.tsx";
import { toast } from "../parts/state/toasts.tsx";
import { More } from "../parts/table/more.tsx";
import { usePages } from "../parts/table/pages.ts";
import { Away } from "../parts/value/moment.tsx";
import { plain } from "../parts/value/plain.ts";
import { browserOf } from "../settings/browser-of.ts";
import css from "../settings/settings.module.css";
import type { User } from "./user.ts";

type SignIn = Answer<"listSignInsOf">["items"][number];

/** Where a user is signed in; an admin ends one of them, or all. */
export function UserSignIns({ user: { name }, onClose }: { user: User; onClose: () => void }) {
  const { t } = useWords();
  const signIns = usePages("listSignInsOf", { user: name, limit: 50 });
  return (
    <Confirm
      title={t("access.signInsOf", { user: name })}
      consequence={t("access.signInsTold")}
      act={t("access.endSignIns")}
      onDo={async ({ reason, key }) => {
        const { ended } = await call("endSignInsOf", { user: name, reason }, { key });
        outdate("listSignInsOf");
        toast({ text: t("access.signInsEnded", { n: ended, user: name }) });
      }}
      onClose={onClose}
    >
      <Shown of={signIns} rows={2}>
        {(items) =>
          items.length === 0 ? (
            <Nothing title={t("settings.noSignIns")} />
          ) : (
            <>
              <ul className={css.signIns}>
                {items.map((one) => (
                  <li key={one.signIn}>
                    <One user={name} signIn={one} />
                  </li>
                ))}
              </ul>
              <More of={signIns} tight />
            </>
          )
        }
      </Shown>
    </Confirm>
  );
}

function One({ user, signIn: { signIn, begun, seen, address, agent } }: { user: string; signIn: SignIn }) {
  const { t } = useWords();
  const end = useMutation({
    mutationFn: () => call("endSignInOf", { user, signIn }),
    onSuccess: () => toast({ text: t("settings.signInEnded") }),
    onSettled: () => outdate("listSignInsOf"),
  });
  return (
    <div className={css.signIn}>
      <div>
        <b title={plain(agent ?? "")}>{browserOf(agent) ?? t("settings.unknownBrowser")}</b>
        <small>
          {plain(address ?? "–")} · {t("settings.begun")} <Away at={begun} /> · {t("settings.seen")} <Away at={seen} />
        </small>
        {end.error && <Trouble error={end.error} small />}
      </div>
      <Button
        size="compact-sm"
        variant="default"
        loading={end.isPending}
        aria-label={t("settings.endSignInOf", { number: signIn })}
        onClick={() => end.mutate()}
      >
        {t("settings.endSignIn")}
      </Button>
    </div>
  );
}
