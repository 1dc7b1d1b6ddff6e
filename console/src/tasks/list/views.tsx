/** Saved views: filters with a name, kept in this browser. */
import { ActionIcon, Button, Menu, TextInput } from "@mantine/core";
import { IconBookmark, IconTrash } from "@tabler/icons-react";
import { useState } from "react";
import type { Filter } from "../../filter.ts";
import { useWords } from "../../messages/words.ts";

const place = "carillon.views.tasks";
type View = { name: string; filter: Filter };

function kept(): View[] {
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

export function Views({ present, onTake }: { present: Filter; onTake: (filter: Filter) => void }) {
  const { t } = useWords();
  const [views, setViews] = useState(kept);
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
    <Menu position="bottom-end" width={280} closeOnItemClick={false}>
      <Menu.Target>
        <Button variant="default" leftSection={<IconBookmark size={16} aria-hidden />}>
          {t("views.title")}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {views.length === 0 && <Menu.Label c="var(--c-soft)">{t("views.none")}</Menu.Label>}
        {views.map((view) => (
          <div key={view.name} style={{ display: "flex", alignItems: "center" }}>
            <Menu.Item onClick={() => onTake(view.filter)} closeMenuOnClick>
              {view.name}
            </Menu.Item>
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
        <Menu.Divider />
        <form
          style={{ display: "flex", gap: 6, padding: 6 }}
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
            onKeyDown={(event) => event.stopPropagation()}
          />
          <Button size="xs" type="submit" disabled={name.trim() === ""}>
            {t("views.keep")}
          </Button>
        </form>
      </Menu.Dropdown>
    </Menu>
  );
}
