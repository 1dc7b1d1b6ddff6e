import { Button } from "@mantine/core";
import { IconPlayerPause, IconPlayerPlay } from "@tabler/icons-react";
import { useState } from "react";
import type { Filter } from "../../filter.ts";
import { useWords } from "../../messages/words.ts";
import { ChoiceBar } from "../../parts/table/choice.tsx";
import { Bulk, type BulkTarget, type TaskFilter } from "./bulk.tsx";

/** Pauses or resumes the selected tasks, or all matching tasks. The dialog stays open if the act leaves the list empty. */
export function BulkBar({
  isThere,
  chosen,
  search,
  filter,
  onNone,
}: {
  /** True if the list has rows. */
  isThere: boolean;
  chosen: ReadonlySet<string>;
  search: Filter;
  /** The list's filter, converted into the filter of an operation. */
  filter: TaskFilter;
  onNone: () => void;
}) {
  const { t } = useWords();
  const [target, setTarget] = useState<BulkTarget>();
  const isFiltered = Object.keys(search).length > 0;
  return (
    <>
      {isThere && (
        <ChoiceBar
          isSome={chosen.size > 0}
          told={chosen.size > 0 ? t("tasks.chosen", { n: chosen.size }) : t("tasks.chooseTold")}
          onNone={onNone}
          acts={
            <>
              <Button
                size="compact-sm"
                variant="default"
                leftSection={<IconPlayerPause size={14} />}
                onClick={() => setTarget({ kind: "pause", tasks: [...chosen] })}
              >
                {t("task.pause")}
              </Button>
              <Button
                size="compact-sm"
                variant="default"
                leftSection={<IconPlayerPlay size={14} />}
                onClick={() => setTarget({ kind: "resume", tasks: [...chosen] })}
              >
                {t("task.resume")}
              </Button>
            </>
          }
          // No operation can be limited to an owner, so such a list offers only acts on chosen tasks.
          all={
            search.owner ? undefined : (
              <>
                <span className="soft">{isFiltered ? t("tasks.matched") : t("tasks.everything")}</span>
                {/* A list filtered to paused tasks offers only "resume"; a list filtered to active tasks offers only "pause". */}
                {search.paused !== "yes" && (
                  <Button size="compact-sm" variant="default" onClick={() => setTarget({ kind: "pause", filter })}>
                    {t("tasks.pauseAll")}
                  </Button>
                )}
                {search.paused !== "no" && (
                  <Button size="compact-sm" variant="default" onClick={() => setTarget({ kind: "resume", filter })}>
                    {t("tasks.resumeAll")}
                  </Button>
                )}
              </>
            )
          }
        />
      )}
      {target && (
        <Bulk
          target={target}
          onClose={() => setTarget(undefined)}
          onDone={() => {
            setTarget(undefined);
            onNone();
          }}
        />
      )}
    </>
  );
}
