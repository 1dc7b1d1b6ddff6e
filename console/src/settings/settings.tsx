import { SegmentedControl, Switch } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useAnswer } from "../api/answers.ts";
import { highestOf } from "../api/may.ts";
import { useWords } from "../messages/words.ts";
import { useNow } from "../now.ts";
import { ZoneField } from "../parts/form/zone-field.tsx";
import { Card, Facts, Page } from "../parts/layout/page.tsx";
import { type Language, type Preferences, prefer, usePreferences } from "../preferences.ts";
import { Password } from "./password.tsx";
import { SecondFactor } from "./second-factor.tsx";
import css from "./settings.module.css";
import { SignIns } from "./sign-ins.tsx";

export function Settings() {
  const { t, moment, when } = useWords();
  const now = useNow();
  const { language, scheme, zone, readOnly } = usePreferences();
  const me = useAnswer("getMe", {});
  return (
    <Page title={t("screen.settings")} below={t("settings.lead")}>
      <div className={css.cards}>
        <Card title={t("settings.look")}>
          <div className={css.form}>
            <div>
              <span className={css.label}>{t("settings.language")}</span>
              <SegmentedControl
                aria-label={t("settings.language")}
                value={language}
                onChange={(value) => prefer({ language: value as Language })}
                data={[
                  { value: "en", label: <span lang="en">English</span> },
                  { value: "zh", label: <span lang="zh-CN">中文</span> },
                ]}
              />
            </div>
            <div>
              <span className={css.label}>{t("settings.scheme")}</span>
              <SegmentedControl
                aria-label={t("settings.scheme")}
                value={scheme}
                onChange={(value) => prefer({ scheme: value as Preferences["scheme"] })}
                data={(["auto", "light", "dark"] as const).map((value) => ({ value, label: t(`choice.${value}`) }))}
              />
            </div>
            <ZoneField
              label={t("settings.zone")}
              description={moment(now)}
              value={zone}
              onChange={(chosen) => prefer({ zone: chosen })}
            />
            <Switch
              label={t("settings.readOnly")}
              description={t("settings.readOnlyTold")}
              checked={readOnly}
              onChange={(event) => prefer({ readOnly: event.currentTarget.checked })}
            />
            <Link to="/wallboard">{t("wallboard.open")}</Link>
          </div>
        </Card>
        <Card title={t("settings.you")}>
          {me.data && (
            <Facts
              facts={[
                [t("signIn.name"), me.data.user],
                [t("settings.role"), `${t(`role.${highestOf(me.data)}`)}: ${t(`role.${highestOf(me.data)}.may`)}`],
                [t("settings.until"), me.data.expires === null ? "–" : when(Date.parse(me.data.expires))],
              ]}
            />
          )}
          {me.data?.provided === false && (
            <div className={css.below}>
              <Password heading={t("settings.password")} />
            </div>
          )}
        </Card>
        {me.data?.provided === false && (
          <Card title={t("factor.title")}>
            <SecondFactor />
          </Card>
        )}
        <Card title={t("settings.signIns")}>
          <p className="soft">{t("settings.signInsTold")}</p>
          <SignIns />
        </Card>
      </div>
    </Page>
  );
}
