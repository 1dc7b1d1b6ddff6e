/** Access: users, tokens, worker keys, secrets, and the ways to sign in. Each part is shown to the users who may see it. */
import { Tabs } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useAnswer } from "../api/answers.ts";
import { useSees } from "../api/may.ts";
import { useWords } from "../messages/words.ts";
import { Page } from "../parts/layout/page.tsx";
import css from "./access.module.css";
import { Hooks } from "./hooks/hooks.tsx";
import { Provider } from "./provider.tsx";
import { Quotas } from "./quotas.tsx";
import { Secrets } from "./secrets.tsx";
import { Tokens } from "./tokens.tsx";
import { Users } from "./users.tsx";
import { WorkerKeys } from "./worker-keys.tsx";

const parts = ["users", "tokens", "keys", "secrets", "hooks", "quotas", "sign-in"] as const;
type Part = (typeof parts)[number];

export function Access() {
  const { t } = useWords();
  const { part } = useSearch({ from: "/access" });
  const navigate = useNavigate({ from: "/access" });
  const sees: Record<Part, boolean> = {
    users: useSees("admin", true),
    tokens: useSees("viewer"),
    keys: useSees("admin"),
    secrets: useSees("editor", true),
    hooks: useSees("viewer"),
    quotas: useSees("viewer"),
    "sign-in": true,
  };
  const { data: me } = useAnswer("getMe", {});
  // Until the user is known, the part that the address names is read all the same: the server refuses it to users who may not see it.
  const shown = parts.filter((one) => (me ? sees[one] : one === part));
  const chosen = shown.find((one) => one === part) ?? shown[0];
  return (
    <Page title={t("screen.access")} below={t("access.lead")}>
      <Tabs
        value={chosen ?? null}
        onChange={(next) => void navigate({ search: { part: next ?? undefined } })}
        keepMounted={false}
        classNames={{ panel: css.panel ?? "" }}
      >
        <Tabs.List>
          {shown.map((one) => (
            <Tabs.Tab key={one} value={one}>
              {t(`access.part.${one === "sign-in" ? "signIn" : one}`)}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Tabs.Panel value="users">
          <Users />
        </Tabs.Panel>
        <Tabs.Panel value="tokens">
          <Tokens />
        </Tabs.Panel>
        <Tabs.Panel value="keys">
          <WorkerKeys />
        </Tabs.Panel>
        <Tabs.Panel value="secrets">
          <Secrets />
        </Tabs.Panel>
        <Tabs.Panel value="hooks">
          <Hooks />
        </Tabs.Panel>
        <Tabs.Panel value="quotas">
          <Quotas />
        </Tabs.Panel>
        <Tabs.Panel value="sign-in">
          <Provider />
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}
