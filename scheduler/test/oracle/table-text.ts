/** Formats a table as the pages of the docs do: one row per event, one column per state. */
export function tableText<State extends string, Event extends string>(
  states: readonly State[],
  events: readonly Event[],
  cell: (state: State, event: Event) => string,
): string {
  const row = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [
    row(["event", ...states]),
    `|---|${"---|".repeat(states.length)}`,
    ...events.map((event) => row([event, ...states.map((state) => cell(state, event))])),
  ].join("\n");
}
