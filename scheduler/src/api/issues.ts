/** An issue that a schema reports. */
interface Issue {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

const toldMost = 3;

/** The first issues, each with its path, as a part of an error's message. */
export const issuesText = (issues: readonly Issue[]): string =>
  issues
    .slice(0, toldMost)
    .map(({ path, message }) => (path.length > 0 ? `${path.join(".")}: ${message}` : message))
    .join("; ");
