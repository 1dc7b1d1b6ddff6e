/** The dialog of an act that was chosen in the command palette: the same as on the act's own screen. */
import { Ask } from "../../dead-letters/group.tsx";
import { RunActDialog } from "../../runs/act-dialog.tsx";
import type { Run } from "../../runs/answers.ts";
import type { RunAct } from "../../runs/states.ts";
import { Create } from "../../tasks/create/create.tsx";
import { Bulk } from "../../tasks/list/bulk.tsx";
import { Pause } from "../../tasks/pause.tsx";
import { RunNamed } from "../../tasks/run/run-named.tsx";
import { useResume } from "../../tasks/undo.ts";
import { DrainNamed } from "../../workers/drain.tsx";

export type PaletteAct =
  | { act: "create" }
  | { act: "run" | "pause"; task: string }
  | { act: "pauseGroup" | "resumeGroup"; group: string }
  | { act: "drain" | "undrain"; node: string }
  | { act: RunAct | "edit"; run: Run }
  | { act: "dismiss"; run: number; fingerprint: string };

export function ActOfPalette({ chosen, onClose }: { chosen: PaletteAct; onClose: () => void }) {
  const resume = useResume();
  switch (chosen.act) {
    case "create":
      return <Create onClose={onClose} />;
    case "run":
      return <RunNamed task={chosen.task} onClose={onClose} />;
    case "pause":
      return <Pause task={chosen.task} onUndo={() => resume(chosen.task)} onClose={onClose} />;
    case "pauseGroup":
    case "resumeGroup": {
      const kind = chosen.act === "pauseGroup" ? "pause" : "resume";
      return <Bulk target={{ kind, filter: { group: chosen.group } }} onClose={onClose} onDone={onClose} />;
    }
    case "drain":
    case "undrain":
      return <DrainNamed node={chosen.node} drained={chosen.act === "undrain"} onClose={onClose} />;
    case "dismiss":
      return (
        <Ask
          kind="dismiss"
          group={{ fingerprint: chosen.fingerprint, letters: 1 }}
          letter={{ run: chosen.run }}
          narrowing={{}}
          onClose={onClose}
        />
      );
    default:
      return <RunActDialog act={chosen.act} run={chosen.run} onClose={onClose} />;
  }
}
