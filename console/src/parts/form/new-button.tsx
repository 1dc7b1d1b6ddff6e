import { Button } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";

/** The button above a list that opens the form of a new item. */
export function NewButton({ children, onClick }: { children: string; onClick: () => void }) {
  return (
    <Button leftSection={<IconPlus size={16} aria-hidden />} onClick={onClick}>
      {children}
    </Button>
  );
}
