import type { IconMoon } from "@tabler/icons-react";

/** An entry of the command palette. */
export interface Entry {
  id: string;
  text: string;
  more: string;
  icon: typeof IconMoon;
  go: () => void;
}
