import { Switch } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useWords } from "../messages/words.ts";
import { Card } from "../parts/layout/page.tsx";
import { Shown } from "../parts/state/notice.tsx";
import { More } from "../parts/table/more.tsx";
import css from "./access.module.css";

interface Listed<Item> {
  data: Item[] | undefined;
  error: unknown;
  refetch: () => unknown;
  more: boolean;
  onMore: () => void;
}

/** One part of the screen: its description, its actions, and a row for each item. */
export function Rows<Item>({
  of,
  told,
  act,
  isEnded,
  none,
  keyOf,
  children,
}: {
  of: Listed<Item>;
  told: string;
  act?: ReactNode;
  /** Returns true for items that have expired or were revoked. The list hides these items until the user turns on a switch. */
  isEnded?: (item: Item) => boolean;
  none: ReactNode;
  keyOf: (item: Item) => string;
  children: (item: Item) => ReactNode;
}) {
  const { t } = useWords();
  const { ended } = useSearch({ from: "/access" });
  const navigate = useNavigate({ from: "/access" });
  const shown = of.data?.filter((item) => ended !== undefined || !isEnded?.(item));
  const hidden = (of.data?.length ?? 0) - (shown?.length ?? 0);
  return (
    <>
      <div className={css.told}>
        <p className="soft">{told}</p>
        {isEnded && (ended !== undefined || hidden > 0) && (
          <Switch
            label={t("access.ended")}
            checked={ended !== undefined}
            onChange={(event) => {
              const wanted = event.currentTarget.checked ? "shown" : undefined;
              void navigate({ search: (before) => ({ ...before, ended: wanted }), replace: true });
            }}
          />
        )}
        {act}
      </div>
      <Card tight>
        <Shown of={of} rows={5}>
          {() =>
            shown?.length === 0 && !of.more ? (
              none
            ) : (
              <>
                <ul className={css.rows}>
                  {shown?.map((item) => (
                    <li key={keyOf(item)}>{children(item)}</li>
                  ))}
                </ul>
                <More of={of} tight />
              </>
            )
          }
        </Shown>
      </Card>
    </>
  );
}
