import { Button, Menu } from "@mantine/core";
import { IconDots, IconUserPlus } from "@tabler/icons-react";
import { useState } from "react";
import { outdate } from "../api/answers.ts";
import { call } from "../api/call.ts";
import { useReach } from "../api/may.ts";
import { useWords } from "../messages/words.ts";
import { Confirm } from "../parts/form/confirm.tsx";
import { Tag } from "../parts/state/mark.tsx";
import { toast } from "../parts/state/toasts.tsx";
import { usePages } from "../parts/table/pages.ts";
import { Away } from "../parts/value/moment.tsx";
import { plain } from "../parts/value/plain.ts";
import css from "./access.module.css";
import { Rows } from "./rows.tsx";
import type { User } from "./user.ts";
import { ChangeUser, NewUser, SetPassword } from "./user-forms.tsx";
import { UserSignIns } from "./user-sign-ins.tsx";

type Act = "change" | "password" | "factor" | "signIns" | "disable" | "remove";

export function Users() {
  const { t } = useWords();
  const may = useReach("admin").everywhere;
  const users = usePages("listUsers", { limit: 100 });
  const [isNew, setNew] = useState(false);
  return (
    <>
      <Rows
        of={users}
        told={t("access.usersTold")}
        keyOf={({ name }) => name}
        none={null}
        act={
          may && (
            <Button leftSection={<IconUserPlus size={17} aria-hidden />} onClick={() => setNew(true)}>
              {t("access.newUser")}
            </Button>
          )
        }
      >
        {(user) => <One user={user} may={may} />}
      </Rows>
      {isNew && <NewUser onClose={() => setNew(false)} />}
    </>
  );
}

/** Shows a user's roles, and tags for a provider's user, a second factor and a disabled user. */
function Tags({ user: { role, grants, disabled, provided, secondFactor } }: { user: User }) {
  const { t } = useWords();
  return (
    <div className={css.tags}>
      {role === null ? (
        <span className="soft">{t("access.nowhereElse")}</span>
      ) : (
        <Tag tone={role === "admin" ? "late" : "run"}>{t(`role.${role}`)}</Tag>
      )}
      {grants
        .filter(({ namespace }) => namespace !== "*")
        .map((grant) => (
          <Tag key={grant.namespace} tone="wait">
            {grant.namespace}: {t(`role.${grant.role}`)}
          </Tag>
        ))}
      {provided && <Tag tone="skip">{t("access.provided")}</Tag>}
      {secondFactor !== null && <Tag tone="ok">{t("access.secondFactor")}</Tag>}
      {disabled !== null && <Tag tone="bad">{t("access.disabled")}</Tag>}
    </div>
  );
}

function One({ user, may }: { user: User; may: boolean }) {
  const { t } = useWords();
  const [act, setAct] = useState<Act>();
  const close = () => setAct(undefined);
  const { name, disabled, provided, secondFactor, created, createdBy } = user;
  const letIn = async () => {
    try {
      await call("changeUser", { user: name, disabled: false });
      outdate("listUsers");
      toast({ text: t("access.letInDone", { user: name }) });
    } catch (error) {
      toast({ failed: true, text: error instanceof Error ? error.message : String(error) });
    }
  };
  return (
    <div className={css.row} data-off={disabled !== null || undefined}>
      <span className={css.face} aria-hidden>
        {[...name][0]?.toUpperCase()}
      </span>
      <div className={css.who}>
        <b>{plain(name)}</b>
        <small>
          {t("access.madeBy", { by: plain(createdBy) })} <Away at={created} past />
        </small>
      </div>
      <Tags user={user} />
      {may && (
        <span className={css.acts}>
          <Button
            size="compact-sm"
            variant="default"
            aria-label={t("access.changeOf", { what: name })}
            onClick={() => setAct("change")}
          >
            {t("access.change")}
          </Button>
          <Menu position="bottom-end" withinPortal>
            <Menu.Target>
              <Button size="compact-sm" variant="default" px={6} aria-label={t("access.moreOf", { what: name })}>
                <IconDots size={16} aria-hidden />
              </Button>
            </Menu.Target>
            <Menu.Dropdown>
              {!provided && <Menu.Item onClick={() => setAct("password")}>{t("access.setPassword")}</Menu.Item>}
              {secondFactor !== null && (
                <Menu.Item onClick={() => setAct("factor")}>{t("access.resetFactor")}</Menu.Item>
              )}
              <Menu.Item onClick={() => setAct("signIns")}>{t("access.signIns")}</Menu.Item>
              {disabled === null ? (
                <Menu.Item onClick={() => setAct("disable")}>{t("access.disable")}</Menu.Item>
              ) : (
                <Menu.Item onClick={() => void letIn()}>{t("access.letIn")}</Menu.Item>
              )}
              <Menu.Item color="var(--c-bad)" onClick={() => setAct("remove")}>
                {t("access.removeUser")}
              </Menu.Item>
            </Menu.Dropdown>
          </Menu>
        </span>
      )}
      {act === "change" && <ChangeUser user={user} onClose={close} />}
      {act === "password" && <SetPassword user={user} onClose={close} />}
      {act === "signIns" && <UserSignIns user={user} onClose={close} />}
      {act === "factor" && (
        <Confirm
          title={t("access.resetFactorTitle", { user: name })}
          consequence={t("access.resetFactorTold")}
          act={t("access.resetFactor")}
          grave
          onDo={async ({ reason, key }) => {
            await call("resetSecondFactor", { user: name, reason }, { key });
            outdate("listUsers");
            toast({ text: t("access.resetFactorDone", { user: name }) });
          }}
          onClose={close}
        />
      )}
      {act === "disable" && (
        <Confirm
          title={t("access.disableTitle", { user: name })}
          consequence={t("access.disableTold")}
          act={t("access.disable")}
          grave
          onDo={async ({ reason, key }) => {
            await call("changeUser", { user: name, disabled: true, reason }, { key });
            outdate("listUsers", "listTokens");
            toast({ text: t("access.disabledDone", { user: name }), undo: () => void letIn() });
          }}
          onClose={close}
        />
      )}
      {act === "remove" && (
        <Confirm
          title={t("access.removeUserTitle", { user: name })}
          consequence={t("access.removeUserTold")}
          act={t("access.remove")}
          grave
          onDo={async ({ reason, key }) => {
            await call("removeUser", { user: name, reason }, { key });
            outdate("listUsers", "listTokens");
            toast({ text: t("access.removedDone", { what: name }) });
          }}
          onClose={close}
        />
      )}
    </div>
  );
}
