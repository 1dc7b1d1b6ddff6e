import { Link } from "@tanstack/react-router";
import { useSees } from "../api/may.ts";
import { useWords } from "../messages/words.ts";
import { type Screen, screens } from "./screens.ts";
import css from "./shell.module.css";

export function Navigation() {
  return screens.map((group) => (
    <ul key={group[0]?.to} className={css.group}>
      {group.map((screen) => (
        <Entry key={screen.to} screen={screen} />
      ))}
    </ul>
  ));
}

function Entry({ screen: { to, name, icon: Icon, least, everywhere } }: { screen: Screen }) {
  const { t } = useWords();
  const sees = useSees(least, everywhere);
  if (!sees) return null;
  return (
    <li>
      <Link to={to} activeOptions={{ exact: to === "/" }} className={css.entry}>
        <Icon size={18} stroke={1.8} aria-hidden />
        <span>{t(name)}</span>
      </Link>
    </li>
  );
}
