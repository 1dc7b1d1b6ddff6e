/**
 * Keys typed after the palette's shortcut, while its code loads and until its field has the focus. Without this, they went to the
 * page behind it, and Enter to the palette's first entry.
 */
export class TypedAhead {
  #text = "";
  #entered = false;
  readonly #stopped = new AbortController();

  constructor() {
    window.addEventListener("keydown", this.#onKey, { capture: true, signal: this.#stopped.signal });
  }

  /** Returns the keys typed so far, and leaves all further ones to the field. */
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
