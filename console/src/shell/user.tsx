import { ActionIcon, Menu } from "@mantine/core";
import { IconLogout, IconSettings, IconUser } from "@tabler/icons-react";
import { useNavigate } from "@tanstack/react-router";
import { useAnswer } from "../api/answers.ts";
import { call } from "../api/call.ts";
import { highestOf } from "../api/may.ts";
import { useWords } from "../messages/words.ts";
import { toast } from "../parts/state/toasts.tsx";
import { usePreferences } from "../preferences.ts";

export function User() {
  const { t } = useWords();
  const navigate = useNavigate();
  const { readOnly } = usePreferences();
  const { data: me } = useAnswer("getMe", {});
  if (!me) return null;
  const leave = () =>
    call("signOut", {}).then(
      // A reload discards all data of the previous user.
      () => window.location.reload(),
      (error: unknown) => toast({ failed: true, text: error instanceof Error ? error.message : String(error) }),
    );
  return (
    <Menu position="bottom-end" width={230}>
      <Menu.Target>
        <ActionIcon variant="default" radius="xl" size={32} aria-label={t("user.menu", { user: me.user })}>
          <span aria-hidden style={{ fontWeight: 650, fontSize: 13 }}>
            {[...me.user][0]?.toUpperCase() ?? <IconUser size={16} />}
          </span>
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label c="var(--c-soft)">
          {me.user} · {t(`role.${highestOf(me)}`)}
          {readOnly && ` · ${t("user.readOnly")}`}
        </Menu.Label>
        <Menu.Item leftSection={<IconSettings size={16} />} onClick={() => void navigate({ to: "/settings" })}>
          {t("screen.settings")}
        </Menu.Item>
        <Menu.Item leftSection={<IconLogout size={16} />} onClick={() => void leave()}>
          {t("user.signOut")}
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
