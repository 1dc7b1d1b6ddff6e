import { ActionIcon, CopyButton } from "@mantine/core";
import { IconCheck, IconChevronRight, IconLink } from "@tabler/icons-react";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { serverUrl } from "../api/base.ts";
import { catalogues, type Message, useWords } from "../messages/words.ts";
import { Tag, type Tone } from "../parts/state/mark.tsx";
import { Diff } from "../parts/value/diff.tsx";
import { differences } from "../parts/value/differences.ts";
import { plain } from "../parts/value/plain.ts";
import { Tree } from "../parts/value/tree.tsx";
import css from "./audit.module.css";
import { type About, type AuditEntry, keyOf } from "./words.ts";

const tones: Record<string, Tone> = {
  create: "ok",
  resume: "ok",
  restore: "late",
  remove: "bad",
  revoke: "bad",
  cancel: "late",
  pause: "late",
  dismiss: "late",
  stop: "late",
};
const namesShown = 3;

function ActTag({ act }: { act: string }) {
  const { t, language } = useWords();
  const said = `audit.act.${keyOf(act)}` as Message;
  return <Tag tone={tones[act] ?? "wait"}>{said in catalogues[language] ? t(said) : plain(act)}</Tag>;
}

/** The line of one or several audit entries; a press expands it. */
export function AuditLine(line: {
  at: string;
  who: string;
  act: string;
  why: string;
  isOpen: boolean;
  onTurn: () => void;
  children: ReactNode;
}) {
  const { clock, moment } = useWords();
  const ms = Date.parse(line.at);
  return (
    <button type="button" className={css.line} aria-expanded={line.isOpen} onClick={line.onTurn} data-row>
      <IconChevronRight size={15} aria-hidden className={css.turn} />
      <time dateTime={line.at} title={moment(ms)} className={`${css.time} figures`}>
        {clock(ms)}
      </time>
      <span className={css.what}>
        <b>{plain(line.who)}</b> <ActTag act={line.act} /> {line.children}
      </span>
      {line.why !== "" && <span className={css.why}>{plain(line.why)}</span>}
    </button>
  );
}

/** The first names of a list, and the number of the others. */
export function FirstNames({ names }: { names: string[] }) {
  const { t } = useWords();
  return (
    <span className={css.parts}>
      {names.slice(0, namesShown).map(plain).join(", ")}
      {names.length > namesShown && ` ${t("bulk.andMore", { n: names.length - namesShown })}`}
    </span>
  );
}

export function Entry({ entry, isOpen }: { entry: AuditEntry; isOpen: boolean }) {
  const { t, language } = useWords();
  const [open, setOpen] = useState(isOpen);
  const { at, who, act, about, named, task, before, after, why } = entry;
  const object = `audit.one.${keyOf(about)}` as Message;
  const isEdit = before !== null && after !== null;
  const parts = isEdit ? differences(before, after).map(({ part }) => part.split(".")[0] as string) : [];
  const named1 = [...new Set(parts)].filter((part) => part !== "");
  return (
    <li className={css.entry} data-open={open || undefined}>
      <AuditLine at={at} who={who} act={act} why={why} isOpen={open} onTurn={() => setOpen(!open)}>
        <span className="soft">{object in catalogues[language] ? t(object) : about}</span> <b>{plain(named)}</b>
        {task !== null && <span className="soft"> {t("audit.of", { task: plain(task) })}</span>}
        {named1.length > 0 && <FirstNames names={named1} />}
      </AuditLine>
      {open && (
        <div className={css.more}>
          {before === null && after === null ? (
            <p className="soft">{t("audit.nothingTold")}</p>
          ) : isEdit ? (
            <>
              <Diff was={before} is={after} label={t("audit.differs")} />
              <details>
                <summary>{t("audit.whole")}</summary>
                <div className={css.both}>
                  <Side title={t("audit.before")} value={before} />
                  <Side title={t("audit.after")} value={after} />
                </div>
              </details>
            </>
          ) : (
            <Side title={t(before === null ? "audit.after" : "audit.before")} value={before ?? after} />
          )}
          <p className={css.links}>
            <Subject about={about as About} named={named} task={task} />
            <CopyButton value={`${serverUrl}/audit?entry=${entry.entry}`}>
              {({ copied, copy }) => (
                <ActionIcon
                  variant="default"
                  size={28}
                  aria-label={t(copied ? "act.copied" : "audit.copyLink")}
                  title={t("audit.copyLink")}
                  onClick={copy}
                >
                  {copied ? <IconCheck size={15} aria-hidden /> : <IconLink size={15} aria-hidden />}
                </ActionIcon>
              )}
            </CopyButton>
          </p>
        </div>
      )}
    </li>
  );
}

function Side({ title, value }: { title: string; value: unknown }) {
  return (
    <div>
      <h3 className={css.side}>{title}</h3>
      <Tree value={value} label={title} />
    </div>
  );
}

/** Links to the subject's screen, if it has one, and to all changes of the subject. */
function Subject({ about, named, task }: { about: About; named: string; task: string | null }) {
  const { t } = useWords();
  return (
    <>
      {(about === "task" || task !== null) && (
        <Link to="/tasks/$task" params={{ task: task ?? named }}>
          {t("audit.toTask")}
        </Link>
      )}
      {about === "run" && (
        <Link to="/runs/$run" params={{ run: named }}>
          {t("audit.toRun")}
        </Link>
      )}
      {about === "calendar" && (
        <Link to="/calendars/$calendar" params={{ calendar: named }}>
          {t("audit.toCalendar")}
        </Link>
      )}
      <Link to="/audit" search={{ about, named }}>
        {t("audit.allOf")}
      </Link>
    </>
  );
}
