/** Short messages about completed or failed acts, at the edge of the page; some have an undo button. */
import { Button, CloseButton } from "@mantine/core";
import { IconCheck, IconX } from "@tabler/icons-react";
import { useSyncExternalStore } from "react";
import { useWords } from "../../messages/words.ts";
import css from "./toasts.module.css";

export interface Toast {
  text: string;
  failed?: boolean;
  /** If true, the toast stays until the user closes it, because its text takes time to read. */
  stays?: boolean;
  /** Undoes the act. If its promise rejects, another toast reports the error. */
  undo?: () => unknown;
}

type Kept = Toast & { id: number };
const shownMs = 8_000;
let kept: Kept[] = [];
let last = 0;
const listeners = new Set<() => void>();

function keep(next: Kept[]): void {
  kept = next;
  for (const listener of listeners) listener();
}
const drop = (id: number) => keep(kept.filter((toast) => toast.id !== id));

export function toast(told: Toast): void {
  const id = ++last;
  keep([...kept.slice(-2), { ...told, id }]);
  if (!told.stays) setTimeout(() => drop(id), shownMs);
}

export const toastFailure = (error: unknown): void =>
  toast({ failed: true, text: error instanceof Error ? error.message : String(error) });

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

export function Toasts() {
  const { t } = useWords();
  const toasts = useSyncExternalStore(subscribe, () => kept);
  return (
    <div className={css.toasts} role="status" aria-live="polite">
      {toasts.map(({ id, text, failed, undo }) => (
        <div key={id} className={css.toast}>
          {failed ? (
            <IconX size={17} className={css.bad} aria-hidden />
          ) : (
            <IconCheck size={17} className={css.ok} aria-hidden />
          )}
          <span>{text}</span>
          {undo && (
            <Button
              size="compact-sm"
              variant="default"
              onClick={() => {
                Promise.resolve(undo()).catch(toastFailure);
                drop(id);
              }}
            >
              {t("act.undo")}
            </Button>
          )}
          <CloseButton size="sm" aria-label={t("act.close")} onClick={() => drop(id)} />
        </div>
      ))}
    </div>
  );
}
