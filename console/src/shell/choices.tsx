/** Buttons that switch the language and the colour scheme. */
import { ActionIcon, Button } from "@mantine/core";
import { IconDeviceDesktop, IconMoon, IconSun } from "@tabler/icons-react";
import { useWords } from "../messages/words.ts";
import { prefer, usePreferences } from "../preferences.ts";

const nextScheme = { auto: "light", light: "dark", dark: "auto" } as const;
const icons = { auto: IconDeviceDesktop, light: IconSun, dark: IconMoon };

export function Choices() {
  const { t } = useWords();
  const { language, scheme } = usePreferences();
  const Icon = icons[scheme];
  const label = t("choice.scheme", { scheme: t(`choice.${scheme}`) });
  return (
    <>
      <ActionIcon
        variant="subtle"
        color="gray"
        size={34}
        aria-label={label}
        title={label}
        onClick={() => prefer({ scheme: nextScheme[scheme] })}
      >
        <Icon size={18} color="var(--c-text)" />
      </ActionIcon>
      <Button
        variant="subtle"
        size="compact-md"
        px={8}
        c="var(--c-text)"
        h={34}
        lang={language === "en" ? "zh-CN" : "en"}
        onClick={() => prefer({ language: language === "en" ? "zh" : "en" })}
      >
        {language === "en" ? "中文" : "English"}
      </Button>
    </>
  );
}
