/** A table in the form of the pages: an event a row, a state a column. */
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
