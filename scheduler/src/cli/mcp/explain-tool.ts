import { routes } from "../../api/contract.ts";
import { answerOf, readingTool } from "./tool.ts";

export const explainTool = readingTool({
  name: "explain_run",
  title: "Explain a run",
  description:
    "Why a run waits, is late, failed, was skipped or cancelled: reasons with codes, and the figures that show each. Where several conditions may hold a run back, all of them are listed.",
  input: routes.explainRun.params,
  output: answerOf("explainRun"),
  async call({ run }, { api }) {
    const answer = await api.explainRun({ run });
    const { state, reasons } = answer;
    const codes = reasons.length === 0 ? "nothing delayed it" : reasons.map(({ code }) => code).join(", ");
    return { answer, says: `Run ${run} is ${state}: ${codes}.` };
  },
});
