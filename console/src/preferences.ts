/** The viewer's preferences, kept only in this browser, not on the server. */
import { useSyncExternalStore } from "react";

export type Language = "en" | "zh";

export interface Preferences {
  language: Language;
  /** The name of a time zone; by default the browser's zone. */
  zone: string;
  scheme: "light" | "dark" | "auto";
  /** If true, the page offers no changes, whatever the user's role: for a wall display. */
  readOnly: boolean;
}

const place = "carillon.preferences";

export const ownZone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

/** The defaults. They are computed at each page load, because the browser's zone and language may change. */
function preset(): Preferences {
  return {
    language: navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en",
    zone: ownZone,
    scheme: "auto",
    readOnly: false,
  };
}

function kept(): Partial<Preferences> {
  try {
    const { language, zone, scheme, readOnly } = JSON.parse(
      localStorage.getItem(place) ?? "{}",
    ) as Partial<Preferences>;
    return {
      ...(language === "en" || language === "zh" ? { language } : {}),
      ...(typeof zone === "string" && isZone(zone) ? { zone } : {}),
      ...(scheme === "light" || scheme === "dark" ? { scheme } : {}),
      ...(readOnly === true ? { readOnly } : {}),
    };
  } catch {
    // The browser stores nothing, or the stored text is not valid.
    return {};
  }
}

function isZone(zone: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: zone });
    return true;
  } catch {
    // Intl throws if the zone is unknown.
    return false;
  }
}

let chosen = kept();
let present: Preferences = { ...preset(), ...chosen };
const listeners = new Set<() => void>();
const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

export const preferences = (): Preferences => present;

export function prefer(change: Partial<Preferences>): void {
  chosen = { ...chosen, ...change };
  present = { ...present, ...change };
  try {
    localStorage.setItem(place, JSON.stringify(chosen));
  } catch {
    // If the browser stores nothing, the preference holds for this page only.
  }
  for (const listener of listeners) listener();
}

export const usePreferences = (): Preferences => useSyncExternalStore(subscribe, preferences);
