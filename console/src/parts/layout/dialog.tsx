import { CloseButton, Modal } from "@mantine/core";
import type { ReactNode } from "react";
import { useWords } from "../../messages/words.ts";
import css from "./dialog.module.css";

/**
 * A dialog with a question or a form in front of the screen. Its header does not have the role `banner`, because the page already
 * has one.
 */
export function Dialog({
  title,
  size = 480,
  onClose,
  children,
}: {
  title: string;
  size?: number;
  onClose: () => void;
  children: ReactNode;
}) {
  const { t } = useWords();
  return (
    <Modal.Root opened onClose={onClose} size={size} centered>
      <Modal.Overlay />
      <Modal.Content>
        <div className={css.head}>
          <Modal.Title>{title}</Modal.Title>
          <CloseButton aria-label={t("act.close")} onClick={onClose} />
        </div>
        <Modal.Body>{children}</Modal.Body>
      </Modal.Content>
    </Modal.Root>
  );
}
