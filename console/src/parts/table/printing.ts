import { useSyncExternalStore } from "react";

const media = window.matchMedia("print");
const subscribe = (listener: () => void) => {
  media.addEventListener("change", listener);
  return () => media.removeEventListener("change", listener);
};

/** The most rows of a list that are printed. */
const printedMost = 2_000;

/** The number of rows around the visible ones that are in the DOM: on paper all of them are, because paper does not scroll. */
export function useOverscan(onScreen: number): number {
  const isPrinting = useSyncExternalStore(subscribe, () => media.matches);
  return isPrinting ? printedMost : onScreen;
}
