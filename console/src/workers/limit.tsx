import { NumberInput } from "@mantine/core";
import { useState } from "react";
import { outdate } from "../api/answers.ts";
import { call } from "../api/call.ts";
import { useWords } from "../messages/words.ts";
import { Confirm } from "../parts/form/confirm.tsx";
import { toast } from "../parts/state/toasts.tsx";
import type { WorkerGroup } from "./answers.ts";

/** The dialog that changes how many runs of a group may be in progress at once. */
export function Limit({ group, onClose }: { group: WorkerGroup; onClose: () => void }) {
  const { t } = useWords();
  const [limit, setLimit] = useState<number | string>(group.limit ?? "");
  const set = async (wanted: number | null, reason: string | undefined, key?: string) => {
    await call("limitGroup", { group: group.name, limit: wanted, reason }, key === undefined ? {} : { key });
    outdate("listGroups");
  };
  return (
    <Confirm
      title={t("workers.limitTitle", { group: group.name })}
      consequence={t("workers.limitTold")}
      act={t("workers.change")}
      onDo={async ({ reason, key }) => {
        await set(limit === "" ? null : Number(limit), reason, key);
        toast({ text: t("workers.limited", { group: group.name }), undo: () => set(group.limit, t("act.undo")) });
      }}
      onClose={onClose}
    >
      <NumberInput
        mt="md"
        label={t("workers.limit")}
        placeholder={t("workers.noLimit")}
        min={1}
        max={100_000}
        value={limit}
        onChange={setLimit}
      />
    </Confirm>
  );
}
