/** Saved views of a list: filters with a name, kept in this browser. The link of a view contains its filter, so that it can be shared. */
import { ActionIcon, Button, CopyButton, Popover, TextInput } from "@mantine/core";
import { IconBookmark, IconCheck, IconLink, IconTrash } from "@tabler/icons-react";
import { useState } from "react";
import type { Filter } from "../../filter.ts";
import { useWords } from "../../messages/words.ts";

type View = { name: string; filter: Filter };

const placeOf = (list: string) => `carillon.views.${list}`;

function kept(place: string): View[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(place) ?? "[]");
    return Array.isArray(found)
      ? found.filter((view): view is View => typeof view?.name === "string" && typeof view?.filter === "object")
      : [];
  } catch {
    // If the browser stores nothing, there are no views.
    return [];
  }
}

/** @param list the name of the list, under which its views are kept */
export function Views({
  list,
  present,
  onTake,
}: {
  list: "tasks" | "runs";
  present: Filter;
  onTake: (filter: Filter) => void;
}) {
  const { t } = useWords();
  const place = placeOf(list);
  const [views, setViews] = useState(() => kept(place));
  const [isOpen, setOpen] = useState(false);
  const [name, setName] = useState("");
  const keep = (next: View[]) => {
    setViews(next);
    try {
      localStorage.setItem(place, JSON.stringify(next));
    } catch {
      // If the browser stores nothing, the views last as long as the page.
    }
  };
  return (
    <Popover position="bottom-end" width={300} opened={isOpen} onChange={setOpen} trapFocus withinPortal={false}>
      <Popover.Target>
        <Button
          variant="default"
          leftSection={<IconBookmark size={16} aria-hidden />}
          onClick={() => setOpen((before) => !before)}
        >
          {t("views.title")}
        </Button>
      </Popover.Target>
      <Popover.Dropdown aria-label={t("views.title")}>
        {views.length === 0 && <p className="soft">{t("views.none")}</p>}
        {views.map((view) => (
          <div key={view.name} style={{ display: "flex", alignItems: "center" }}>
            <Button
              fullWidth
              justify="start"
              variant="subtle"
              color="gray"
              c="var(--c-text)"
              onClick={() => {
                onTake(view.filter);
                setOpen(false);
              }}
            >
              {view.name}
            </Button>
            <ActionIcon
              variant="subtle"
              color="gray"
              aria-label={t("views.forget", { name: view.name })}
              onClick={() => keep(views.filter((one) => one !== view))}
            >
              <IconTrash size={15} color="var(--c-soft)" />
            </ActionIcon>
          </div>
        ))}
        <CopyButton value={window.location.href}>
          {({ copied, copy }) => (
            <Button
              fullWidth
              justify="start"
              variant="subtle"
              color="gray"
              c="var(--c-text)"
              leftSection={copied ? <IconCheck size={15} aria-hidden /> : <IconLink size={15} aria-hidden />}
              onClick={copy}
            >
              {t(copied ? "act.copied" : "views.link")}
            </Button>
          )}
        </CopyButton>
        <form
          style={{ display: "flex", gap: 6, paddingTop: 8 }}
          onSubmit={(event) => {
            event.preventDefault();
            if (name.trim() === "") return;
            keep([...views.filter((view) => view.name !== name.trim()), { name: name.trim(), filter: present }]);
            setName("");
          }}
        >
          <TextInput
            size="xs"
            style={{ flex: 1 }}
            aria-label={t("views.name")}
            placeholder={t("views.name")}
            maxLength={60}
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <Button size="xs" type="submit" disabled={name.trim() === ""}>
            {t("views.keep")}
          </Button>
        </form>
      </Popover.Dropdown>
    </Popover>
  );
}
