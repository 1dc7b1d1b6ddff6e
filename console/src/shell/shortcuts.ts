import { useLayoutEffect, useRef } from "react";

const sequenceMs = 1_200;
const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement && (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

/**
 * Registers keyboard shortcuts such as `mod+k` and `?`, or sequences of two keys such as `g t`. While the user types in a field or a
 * dialog is open, only shortcuts with mod work.
 */
export function useShortcuts(shortcuts: Record<string, () => void>): void {
  const present = useRef(shortcuts);
  present.current = shortcuts;
  // A layout effect, so that a key that is pressed as soon as the page is visible is not lost.
  useLayoutEffect(() => {
    let before = "";
    let beforeMs = 0;
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.altKey) return;
      const mod = event.ctrlKey || event.metaKey;
      if (!mod && (isTyping(event.target) || document.querySelector('[role="dialog"]'))) return;
      const key = `${mod ? "mod+" : ""}${event.key.length === 1 ? event.key.toLowerCase() : event.key}`;
      const sequence = event.timeStamp - beforeMs < sequenceMs ? `${before} ${key}` : "";
      const act = present.current[sequence] ?? present.current[key];
      before = key;
      beforeMs = event.timeStamp;
      if (!act) return;
      event.preventDefault();
      before = "";
      act();
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, []);
}
