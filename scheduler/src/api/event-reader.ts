/** Parses server-sent events from text that arrives in arbitrary pieces. */
export class EventReader {
  #rest = "";
  #data: string[] = [];

  /** Adds a piece of text. @returns the data of each event that is now complete; comments are skipped */
  read(text: string): string[] {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    const events: string[] = [];
    for (const raw of lines) {
      const line = raw.replace(/\r$/, "");
      if (line !== "") {
        if (line.startsWith("data:")) this.#data.push(line.slice(5).replace(/^ /, ""));
        continue;
      }
      if (this.#data.length > 0) events.push(this.#data.join("\n"));
      this.#data = [];
    }
    return events;
  }
}

export const eventText = (data: unknown, id?: string): string =>
  `${id === undefined ? "" : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`;
