/** Placeholders for an answer: it is loading, it is empty, or it was refused. */
import { Button, Skeleton } from "@mantine/core";
import { IconAlertTriangle, IconPlugConnectedX } from "@tabler/icons-react";
import type { ReactNode } from "react";
import { isRefusal } from "../../api/call.ts";
import { catalogues, type Message, useWords } from "../../messages/words.ts";
import css from "./notice.module.css";

/** A failure: a title in the viewer's language, the server's message, and advice. */
export function Trouble({ error, again, small = false }: { error: unknown; again?: () => void; small?: boolean }) {
  const { t, language } = useWords();
  const refusal = isRefusal(error) ? error : undefined;
  const message = refusal ? (`refusal.${refusal.code}` as Message) : "refusal.bug";
  const title = message in catalogues[language] ? t(message) : t("refusal.other");
  const Icon = refusal?.code === "SERVER_UNREACHABLE" ? IconPlugConnectedX : IconAlertTriangle;
  const told = refusal && refusal.code !== "SERVER_UNREACHABLE" ? refusal.message : !refusal ? String(error) : "";
  return (
    <div className={css.trouble} data-small={small || undefined} role="alert">
      <Icon size={20} aria-hidden />
      <div>
        <p className={css.title}>{title}</p>
        {told !== "" && <p className={css.told}>{told}</p>}
        {refusal && refusal.hint !== "" && <p className={css.told}>{refusal.hint}</p>}
        {again && (
          <Button size="xs" variant="default" mt="xs" onClick={again}>
            {t("act.again")}
          </Button>
        )}
      </div>
    </div>
  );
}

/** Shown in place of an empty list: a title, and optionally an explanation and a button. */
export function Nothing({ title, children, act }: { title: string; children?: ReactNode; act?: ReactNode }) {
  return (
    <div className={css.nothing}>
      <svg width="72" height="44" viewBox="0 0 72 44" aria-hidden="true">
        <path d="M4 38h64" className={css.ground} />
        <path
          d="M36 6c-7 0-11 5-11.400 12-.400 7.500-1.800 11-5.300 14.500h33.400c-3.500-3.500-4.900-7-5.300-14.500C47 11 43 6 36 6Z"
          className={css.bell}
        />
        <path d="M10 16c2-3 4-4 7-5M62 16c-2-3-4-4-7-5" className={css.sound} />
      </svg>
      <p className={css.title}>{title}</p>
      {children && <div className={css.teach}>{children}</div>}
      {act}
    </div>
  );
}

export function Waiting({ rows = 6, height = 20 }: { rows?: number; height?: number }) {
  const { t } = useWords();
  return (
    <div className={css.waiting} role="status" aria-label={t("notice.loading")}>
      {Array.from({ length: rows }, (_, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the placeholders are all alike.
        <Skeleton key={at} height={height} width={`${92 - ((at * 17) % 40)}%`} radius="sm" />
      ))}
    </div>
  );
}

/** A read: its answer, or the error of its first attempt. */
export interface Asked<Data> {
  data: Data | undefined;
  error: unknown;
  refetch: () => unknown;
}

/**
 * Shows the answer; while it is missing, a placeholder, or the error of the first fetch. If a later fetch fails, the old answer stays
 * and the banner reports the failure.
 */
export function Shown<Data>({
  of,
  rows,
  children,
}: {
  of: Asked<Data>;
  rows?: number;
  children: (data: Data) => ReactNode;
}) {
  if (of.data !== undefined) return children(of.data);
  if (of.error) return <Trouble error={of.error} again={() => void of.refetch()} />;
  return <Waiting {...(rows === undefined ? {} : { rows })} />;
}
