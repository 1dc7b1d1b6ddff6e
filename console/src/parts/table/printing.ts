import { useSyncExternalStore } from "react";

const media = window.matchMedia("print");
const subscribe = (listener: () => void) => {
  media.addEventListener("change", listener);
  return () => media.removeEventListener("change", listener);
};

/** The number of rows before and after the visible ones that are rendered for printing. */
const printedMost = 2_000;

/** The number of rows to render before and after the visible ones. It is larger while printing, because paper does not scroll. */
export function useOverscan(onScreen: number): number {
  const isPrinting = useSyncExternalStore(subscribe, () => media.matches);
  return isPrinting ? printedMost : onScreen;
}
