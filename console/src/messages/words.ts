import { useMemo } from "react";
import { usePreferences } from "../preferences.ts";
import { type Words, wordsIn } from "./texts.ts";

export { catalogues, type Message, type Words } from "./texts.ts";

/** Texts, numbers, spans and times in the viewer's language and zone. */
export function useWords(): Words {
  const { language, zone } = usePreferences();
  return useMemo(() => wordsIn(language, zone), [language, zone]);
}
