import { Button, Switch } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { outdate } from "../../api/answers.ts";
import { call } from "../../api/call.ts";
import { useMay, useReach } from "../../api/may.ts";
import { useWords } from "../../messages/words.ts";
import { Confirm } from "../../parts/form/confirm.tsx";
import { NewButton } from "../../parts/form/new-button.tsx";
import { Tag } from "../../parts/state/mark.tsx";
import { Nothing } from "../../parts/state/notice.tsx";
import { toast, toastFailure } from "../../parts/state/toasts.tsx";
import { usePages } from "../../parts/table/pages.ts";
import { Away } from "../../parts/value/moment.tsx";
import { plain } from "../../parts/value/plain.ts";
import css from "../access.module.css";
import { Once } from "../once.tsx";
import { Rows } from "../rows.tsx";
import { contentOf, type Hook, randomSecret } from "./draft.ts";
import { EditHook } from "./edit.tsx";
import { Preview } from "./preview.tsx";

/** Incoming webhooks: which requests of other services enqueue which runs. */
export function Hooks() {
  const { t } = useWords();
  const may = useMay("admin");
  const hooks = usePages("listHooks", { limit: 100 });
  const [isNew, setNew] = useState(false);
  return (
    <>
      <Rows
        of={hooks}
        told={t("hooks.told")}
        keyOf={({ name }) => name}
        none={
          <Nothing title={t("hooks.none")}>
            <p>{t("hooks.noneTold")}</p>
          </Nothing>
        }
        act={may && <NewButton onClick={() => setNew(true)}>{t("hooks.new")}</NewButton>}
      >
        {(hook) => <One hook={hook} />}
      </Rows>
      {isNew && <EditHook hook={null} onClose={() => setNew(false)} />}
    </>
  );
}

type Act = "edit" | "try" | "rotate" | "remove";

function One({ hook }: { hook: Hook }) {
  const { t } = useWords();
  const reach = useReach("admin");
  const [act, setAct] = useState<Act>();
  const [isBusy, setBusy] = useState(false);
  const { name, version, author, changed, reason, scheme, secret, bundle } = hook;
  const isOn = hook.enabled ?? true;
  const may = reach.on(name);
  const close = () => setAct(undefined);
  const turn = async () => {
    setBusy(true);
    try {
      await call("setHook", { hook: name, ...contentOf(hook), enabled: !isOn }, { ifVersion: version });
    } catch (error) {
      toastFailure(error);
    }
    setBusy(false);
    outdate("listHooks");
  };
  const button = (of: Act) => (
    <Button size="compact-sm" variant="default" aria-label={`${t(`hooks.${of}`)}: ${name}`} onClick={() => setAct(of)}>
      {t(`hooks.${of}`)}
    </Button>
  );
  return (
    <div className={css.row}>
      <div className={css.who}>
        <b className="mono">{name}</b>
        <small>
          {t("access.setBy", { by: plain(author) })} <Away at={changed} past />
          {reason !== "" && ` · ${plain(reason)}`}
          {bundle !== null && ` · ${t("rules.byFiles", { bundle: plain(bundle) })}`}
        </small>
      </div>
      <div className={css.tags}>
        {tasksOf(hook).map((task) => (
          <Tag key={task} tone="wait">
            {plain(task)}
          </Tag>
        ))}
        <span className="soft">
          {scheme} · {plain(secret)}
        </span>
        <Link to="/runs" search={{ label: `hook=${name}` }}>
          {t("hooks.runs")}
        </Link>
      </div>
      <span className={css.acts}>
        <Switch
          size="sm"
          checked={isOn}
          disabled={!may || isBusy}
          aria-label={t("hooks.turn", { hook: name })}
          onChange={() => void turn()}
        />
        {button("try")}
        {may && button("edit")}
        {reach.everywhere && button("rotate")}
        {may && button("remove")}
      </span>
      {act === "edit" && <EditHook hook={hook} onClose={close} />}
      {act === "try" && <Preview hook={name} onClose={close} />}
      {act === "rotate" && <Rotate hook={hook} onClose={close} />}
      {act === "remove" && <Remove hook={hook} onClose={close} />}
    </div>
  );
}

const tasksOf = ({ task }: Hook): string[] =>
  typeof task === "string" ? [task] : [...new Set(Object.values(task.of))];

/** Gives the hook's secret a new random value, and shows the value once. */
function Rotate({ hook: { name, secret }, onClose }: { hook: Hook; onClose: () => void }) {
  const { t } = useWords();
  const [value] = useState(randomSecret);
  const [isDone, setDone] = useState(false);
  if (isDone)
    return (
      <Once title={t("hooks.rotated", { secret })} secret={value} how={`POST /v1/hooks/${name}`} onClose={onClose} />
    );
  return (
    <Confirm
      title={t("hooks.rotateTitle", { secret })}
      consequence={t("hooks.rotateTold")}
      act={t("hooks.rotate")}
      grave
      onDo={async ({ reason, key }) => {
        await call("setSecret", { secret, value, reason }, { key });
        outdate("listSecrets");
      }}
      onClose={onClose}
      onDone={() => setDone(true)}
    />
  );
}

function Remove({ hook: { name, version }, onClose }: { hook: Hook; onClose: () => void }) {
  const { t } = useWords();
  return (
    <Confirm
      title={t("access.removeOf", { what: name })}
      consequence={t("hooks.removeTold")}
      act={t("hooks.remove")}
      grave
      onDo={async ({ reason, key }) => {
        const given = { hook: name, ...(reason === undefined ? {} : { reason }) };
        await call("removeHook", given, { key, ifVersion: version });
        outdate("listHooks");
        toast({ text: t("access.removedDone", { what: name }) });
      }}
      onClose={onClose}
    />
  );
}
