import { useEffect } from "react";

/**
 * Asks the browser not to turn the screen off while the wallboard is visible. Browsers without this function, and pages that were not
 * loaded by https or from localhost, keep their own behaviour.
 */
export function useAwake(): void {
  useEffect(() => {
    let held: WakeLockSentinel | undefined;
    let isOver = false;
    const ask = async () => {
      if (document.hidden || !("wakeLock" in navigator)) return;
      try {
        const lock = await navigator.wakeLock.request("screen");
        if (isOver) await lock.release();
        else held = lock;
      } catch {
        // The system refuses, for example to save its battery: the screen may turn off.
      }
    };
    const onSeen = () => void ask();
    void ask();
    // The browser releases the lock when the page is hidden, so the page requests it again when it becomes visible.
    document.addEventListener("visibilitychange", onSeen);
    return () => {
      isOver = true;
      document.removeEventListener("visibilitychange", onSeen);
      void held?.release();
    };
  }, []);
}
