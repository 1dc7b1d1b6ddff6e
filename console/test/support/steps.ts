/**
 * Counts the steps that a user takes in a page, by the events that the browser delivers, so that a test cannot act without a step.
 *
 * The rule: a click is one step; a key that commands (Enter, Tab, an arrow, Escape, Control+K, or a letter outside of a field) is one
 * step; a field that is filled in is one step, however many letters are typed and whether it was clicked first. Reading and scrolling
 * are no steps. A choice in a list costs two: the click that opens it, and the click on the choice.
 */
import type { Page } from "playwright-core";

const key = "carillon.steps";

/** Runs in the page. The steps are kept in the session's storage, because a step may load another page. */
function watch(key: string): void {
  const told = globalThis as typeof globalThis & { carillonCounts?: true };
  if (told.carillonCounts) return;
  told.carillonCounts = true;
  const texts =
    "textarea, input:not([type=checkbox], [type=radio], [type=file], [type=button], [type=submit], [readonly])";
  let field: EventTarget | null = null;
  const step = (what: string, on: EventTarget | null = null) => {
    if (on !== null && on === field) return;
    field = on;
    const steps = JSON.parse(sessionStorage.getItem(key) ?? "[]") as string[];
    sessionStorage.setItem(key, JSON.stringify([...steps, what]));
  };
  const nameOf = (element: Element) =>
    element.getAttribute("aria-label") ??
    (element.textContent || element.getAttribute("placeholder") || element.tagName).trim();
  const fieldAt = (event: Event) => (event.target as Element).closest(texts);
  const listen = <E extends Event>(type: string, on: (event: E) => void) =>
    addEventListener(type, (event) => event.isTrusted && on(event as E), { capture: true });
  listen("pointerdown", (event) => {
    const text = fieldAt(event);
    const pressed = (event.target as Element).closest(
      "a, button, label, summary, [role=option], [role=menuitem], [role=row]",
    );
    step(text ? "fill" : `click ${nameOf(pressed ?? (event.target as Element)).slice(0, 40)}`, text);
  });
  listen("input", (event) => step("fill", fieldAt(event)));
  listen("keydown", (event: KeyboardEvent) => {
    if (["Control", "Shift", "Alt", "Meta"].includes(event.key)) return;
    const isText = event.key.length === 1 || event.key === "Backspace" || event.key === "Delete";
    const isCommand = event.ctrlKey || event.metaKey || event.altKey;
    if (isText && !isCommand && fieldAt(event)) return;
    // Selecting a field's text in order to replace it belongs to filling it in.
    if (isCommand && event.key === "a" && fieldAt(event)) return;
    step(`key ${isCommand ? "mod+" : ""}${event.key}`);
  });
}

export interface Steps {
  /** The steps since `countSteps`, such as "click Run again". */
  taken: () => Promise<string[]>;
}

/** Begins to count: what the user did before does not count. */
export async function countSteps(page: Page): Promise<Steps> {
  await page.addInitScript(watch, key);
  await page.evaluate(watch, key);
  await page.evaluate((kept) => sessionStorage.removeItem(kept), key);
  return {
    taken: async () =>
      JSON.parse((await page.evaluate((kept) => sessionStorage.getItem(kept), key)) ?? "[]") as string[],
  };
}
