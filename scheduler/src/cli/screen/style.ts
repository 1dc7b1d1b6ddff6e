export type Paint = (text: string) => string;

/** Colours are named by their meaning, not by their hue. */
export interface Style {
  title: Paint;
  dim: Paint;
  good: Paint;
  bad: Paint;
  warning: Paint;
  accent: Paint;
}

const code =
  (open: number, close: number): Paint =>
  (text) =>
    text === "" ? "" : `\u001b[${open}m${text}\u001b[${close}m`;
const none: Paint = (text) => text;

const coloured: Style = {
  title: code(1, 22),
  dim: code(2, 22),
  good: code(32, 39),
  bad: code(31, 39),
  warning: code(33, 39),
  accent: code(36, 39),
};
export const uncoloured: Style = { title: none, dim: none, good: none, bad: none, warning: none, accent: none };

export const styleOf = (colour: boolean): Style => (colour ? coloured : uncoloured);

/** True if colours may be used: the stream is a terminal, and neither the environment (https://no-color.org) nor a flag forbids them. */
export function wantsColour(
  stream: { isTTY?: boolean },
  environment: { NO_COLOR?: string; TERM?: string },
  asked: boolean,
): boolean {
  return asked && stream.isTTY === true && !environment.NO_COLOR && environment.TERM !== "dumb";
}
