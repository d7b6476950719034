import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef } from 'preact/hooks';

/** The browser's own dialog: it holds the focus, and Escape closes it. */
export function Dialog({
  title,
  onClose,
  children,
}: {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const isGone = useRef(false);
  const id = useId();
  // Before the next key: the focus would not be where it is when the dialog closes.
  useLayoutEffect(() => {
    const { current } = dialog;
    current?.showModal();
    return () => {
      isGone.current = true;
      current?.close();
    };
  }, []);
  // `close` comes later, when another dialog may be open in its place: Escape is acted on at once.
  const cancel = (event: Event) => {
    event.preventDefault();
    onClose();
  };
  const close = () => {
    if (!isGone.current) onClose();
  };
  return (
    <dialog ref={dialog} class="dialog" aria-labelledby={id} onCancel={cancel} onClose={close}>
      <h2 id={id}>{title}</h2>
      {children}
    </dialog>
  );
}
