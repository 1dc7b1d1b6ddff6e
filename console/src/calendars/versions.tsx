import { Button } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useAnswer } from "../api/answers.ts";
import { call } from "../api/call.ts";
import { useWords } from "../messages/words.ts";
import { Confirm } from "../parts/form/confirm.tsx";
import { Card } from "../parts/layout/page.tsx";
import { Shown } from "../parts/state/notice.tsx";
import { toast } from "../parts/state/toasts.tsx";
import { More } from "../parts/table/more.tsx";
import { Diff } from "../parts/value/diff.tsx";
import { VersionButton, VersionList } from "../parts/value/versions.tsx";
import css from "./calendar.module.css";
import { type Calendar, contentOf, outdateCalendars } from "./content.ts";

const shownAtFirst = 6;

/** The versions of a calendar, each with its author, time, reason and differences from the present version. The user can revert to one. */
export function CalendarVersions({ calendar, chosen, may }: { calendar: Calendar; chosen: number; may: boolean }) {
  const { t } = useWords();
  const [shown, setShown] = useState(shownAtFirst);
  const [reverting, setReverting] = useState<{ to: Calendar; from: number }>();
  const { version: present, name } = calendar;
  const versions = Array.from({ length: Math.min(shown, present) }, (_, at) => present - at);
  return (
    <Card title={t("versions.title")} tight>
      <VersionList>
        {versions.map((version) => (
          <Version
            key={version}
            calendar={calendar}
            version={version}
            isChosen={version === chosen}
            onRevert={may ? (to) => setReverting({ to, from: present }) : undefined}
          />
        ))}
      </VersionList>
      <More of={{ more: present > shown, onMore: () => setShown(shown + 20) }} tight />
      {reverting && (
        <Confirm
          title={t("versions.revert", { version: String(reverting.to.version) })}
          consequence={t("calendar.revertTold", { n: calendar.tasks.length })}
          act={t("task.revert")}
          onDo={async ({ reason, key }) => {
            const { to, from } = reverting;
            await call(
              "setCalendar",
              { calendar: name, ...contentOf(to), reason, allowShrink: true },
              { key, ifVersion: from },
            );
            outdateCalendars();
            toast({ text: t("versions.reverted", { version: String(to.version) }) });
          }}
          onClose={() => setReverting(undefined)}
        />
      )}
    </Card>
  );
}

function Version({
  calendar,
  version,
  isChosen,
  onRevert,
}: {
  calendar: Calendar;
  version: number;
  isChosen: boolean;
  onRevert: ((found: Calendar) => void) | undefined;
}) {
  const { t } = useWords();
  const navigate = useNavigate({ from: "/calendars/$calendar" });
  const isPresent = version === calendar.version;
  const asked = useAnswer("getCalendar", { calendar: calendar.name, version }, { enabled: !isPresent });
  const found = isPresent ? calendar : asked.data;
  return (
    <li>
      <VersionButton
        version={version}
        made={found}
        isPresent={isPresent}
        isChosen={isChosen}
        onChoose={() =>
          void navigate({
            search: (before) => ({ ...before, version: isPresent ? undefined : String(version) }),
            resetScroll: false,
          })
        }
      />
      {isChosen && !isPresent && (
        <div className={css.versionMore}>
          <Shown of={asked} rows={2}>
            {(old) => (
              <>
                <p className="soft">{t("versions.diff", { from: String(version), to: String(calendar.version) })}</p>
                <Diff was={contentOf(old)} is={contentOf(calendar)} label={t("audit.differs")} />
                {onRevert && (
                  <Button size="compact-sm" variant="default" onClick={() => onRevert(old)}>
                    {t("versions.revert", { version: String(version) })}
                  </Button>
                )}
              </>
            )}
          </Shown>
        </div>
      )}
    </li>
  );
}
