import { Link } from "@tanstack/react-router";
import css from "./links.module.css";

export function TaskLink({ task }: { task: string }) {
  return (
    <Link to="/tasks/$task" params={{ task }} className={css.link} title={task}>
      {task}
    </Link>
  );
}

export function RunLink({ run }: { run: number }) {
  return (
    <Link to="/runs/$run" params={{ run: String(run) }} className={`${css.link} ${css.number}`}>
      {run}
    </Link>
  );
}
