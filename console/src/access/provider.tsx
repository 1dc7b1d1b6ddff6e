import { Anchor } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useAnswer } from "../api/answers.ts";
import { useWords } from "../messages/words.ts";
import { Card, Facts } from "../parts/layout/page.tsx";
import { Nothing, Shown } from "../parts/state/notice.tsx";
import { plain } from "../parts/value/plain.ts";
import css from "./access.module.css";

/** Shows the identity provider, which only the server's settings can change, and the user's own sign-in. */
export function Provider() {
  const { t, when } = useWords();
  const how = useAnswer("howToSignIn", {});
  const me = useAnswer("getMe", {});
  return (
    <div className={css.cards}>
      <Card title={t("access.provider")}>
        <Shown of={how} rows={2}>
          {({ provider }) =>
            provider ? (
              <>
                <Facts
                  facts={[
                    [t("access.provider"), plain(provider.label)],
                    [
                      t("access.path"),
                      <code key="path" className="mono">
                        {provider.path}
                      </code>,
                    ],
                  ]}
                />
                <p className="soft">{t("access.providerTold")}</p>
              </>
            ) : (
              <Nothing title={t("access.noProvider")}>
                <p>{t("access.noProviderTold")}</p>
                <code>carillon server --provider provider.yaml</code>
              </Nothing>
            )
          }
        </Shown>
      </Card>
      <Card title={t("access.mine")}>
        {me.data && (
          <Facts
            facts={[
              [t("signIn.name"), plain(me.data.user)],
              [t("settings.until"), me.data.expires === null ? "–" : when(Date.parse(me.data.expires))],
            ]}
          />
        )}
        <p className="soft">
          {t("access.mineTold")}{" "}
          <Anchor component={Link} to="/settings" underline="always">
            {t("settings.password")}
          </Anchor>
        </p>
      </Card>
    </div>
  );
}
