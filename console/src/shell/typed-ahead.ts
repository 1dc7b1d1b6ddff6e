/**
 * Records the keys that the user types after opening the palette until its field has the focus. Otherwise these keys would trigger
 * shortcuts of the page, or would be lost.
 */
export class TypedAhead {
  #text = "";
  #entered = false;
  readonly #stopped = new AbortController();

  constructor() {
    window.addEventListener("keydown", this.#onKey, { capture: true, signal: this.#stopped.signal });
  }

  /** Stops recording. @returns the text typed so far, and whether Enter was pressed */
  take(): { text: string; entered: boolean } {
    this.#stopped.abort();
    const typed = { text: this.#text, entered: this.#entered };
    this.#text = "";
    this.#entered = false;
    return typed;
  }

  readonly #onKey = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.key.length === 1 && !this.#entered) this.#text += event.key;
    else if (event.key === "Backspace") this.#text = this.#text.slice(0, -1);
    else if (event.key === "Enter") this.#entered = true;
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
}
