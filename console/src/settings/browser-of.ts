import { plain } from "../parts/value/plain.ts";

/**
 * A browser's common name and its system, from its User-Agent, or the first 60 characters of an unknown User-Agent; null without one.
 * The page shows the full text as well.
 */
export function browserOf(agent: string | null): string | null {
  if (!agent) return null;
  const browser = [
    ["Edg", "Edge"],
    ["OPR", "Opera"],
    ["Firefox", "Firefox"],
    ["Chrome", "Chrome"],
    ["Version", "Safari"],
  ].find(([mark]) => agent.includes(`${mark}/`));
  const system = [
    ["Android", "Android"],
    ["iPhone", "iPhone"],
    ["iPad", "iPad"],
    ["Windows", "Windows"],
    ["Mac OS X", "macOS"],
    ["Linux", "Linux"],
  ].find(([mark]) => agent.includes(mark as string));
  return browser
    ? [browser[1], system?.[1]].filter((part) => part !== undefined).join(", ")
    : plain(agent.slice(0, 60));
}
