/** A part of a value that does not match its schema. */
interface Issue {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

const toldMost = 3;

/** Formats the first issues, each with its path, for an error's message. */
export const issuesText = (issues: readonly Issue[]): string =>
  issues
    .slice(0, toldMost)
    .map(({ path, message }) => (path.length > 0 ? `${path.join(".")}: ${message}` : message))
    .join("; ");
