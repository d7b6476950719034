import { signal } from '@preact/signals';
import { navigate } from './router.ts';

/** Pages that `g` and a key lead to. A new page gets its line here. */
export const goKeys = [
  { key: 'd', to: '', label: 'nav.fleet' },
  { key: 'a', to: 'alarms', label: 'nav.alarms' },
  { key: 'r', to: 'rules', label: 'nav.rules' },
  { key: 'n', to: 'add', label: 'nav.add' },
] as const;

const kept = 'sensorium-shortcuts';

/** Single keys can be turned off: speech input and trembling hands press them unintentionally. */
export const hasShortcuts = signal(localOf(kept) !== 'off');
export const isHelpOpen = signal(false);

export function allowShortcuts(isAllowed: boolean): void {
  hasShortcuts.value = isAllowed;
  // If the browser refuses storage, the choice lasts as long as the page.
  try {
    if (isAllowed) localStorage.removeItem(kept);
    else localStorage.setItem(kept, 'off');
  } catch {}
}

function localOf(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

const withinMs = 1_500;

/** Listens for the keys while somebody is signed in. Returns the function that stops it. */
export function startKeyboard(): () => void {
  let goSinceMs = Number.NEGATIVE_INFINITY;
  const press = (event: KeyboardEvent) => {
    if (isForPage(event)) return;
    const isGoing = event.timeStamp - goSinceMs < withinMs;
    goSinceMs = Number.NEGATIVE_INFINITY;
    const place = isGoing ? goKeys.find(({ key }) => key === event.key) : undefined;
    if (place) navigate(place.to);
    else if (event.key === 'g') goSinceMs = event.timeStamp;
    else if (event.key === '?') isHelpOpen.value = true;
    else if (event.key !== '/' || !focusSearch()) return;
    event.preventDefault();
  };
  addEventListener('keydown', press);
  return () => removeEventListener('keydown', press);
}

/** Typed into a field, or meant for a dialog or the browser. */
function isForPage(event: KeyboardEvent): boolean {
  if (!hasShortcuts.value || event.defaultPrevented) return true;
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return true;
  const { target } = event;
  if (document.querySelector('dialog[open]')) return true;
  return (
    target instanceof Element &&
    target.closest('input, textarea, select, [contenteditable]') !== null
  );
}

function focusSearch(): boolean {
  const field = document.querySelector<HTMLInputElement>('main input[type=search]');
  field?.focus();
  field?.select();
  return field !== null;
}
