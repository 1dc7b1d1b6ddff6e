import type { Run } from "carillon";

type Greeted = { name: string };

export default (run: Run, { name }: Greeted): string => `hello ${name}, ${run.attempt satisfies number}`;
