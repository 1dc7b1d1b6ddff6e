import type { KeyboardEvent } from "react";

/** Moves the focus from one `data-row` of a list to the next row (arrow down or j) or to the previous row (arrow up or k). */
export function stepRows(event: KeyboardEvent<HTMLElement>): void {
  const step =
    event.key === "ArrowDown" || event.key === "j" ? 1 : event.key === "ArrowUp" || event.key === "k" ? -1 : 0;
  const row = (event.target as HTMLElement).closest("[data-row]");
  if (step === 0 || !row || event.ctrlKey || event.metaKey || event.altKey) return;
  const rows = [...event.currentTarget.querySelectorAll<HTMLElement>("[data-row]")];
  const next = rows[rows.indexOf(row as HTMLElement) + step];
  if (!next) return;
  event.preventDefault();
  next.focus();
}
