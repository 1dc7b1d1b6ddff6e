/** Server-sent events, read from pieces of text however they are cut. */
export class EventReader {
  #rest = "";
  #data: string[] = [];

  /** @returns the data of each event that is complete by now; comments are skipped */
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

/** One server-sent event as text. */
export const eventText = (data: unknown, id?: string): string =>
  `${id === undefined ? "" : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`;
