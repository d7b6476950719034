import { signal } from '@preact/signals';

export type Theme = 'system' | 'light' | 'dark';

const key = 'sensorium-theme';

/** What a person chose here; nothing else is kept in the browser. */
export const theme = signal<Theme>(readTheme());

export function applyTheme(): void {
  const { value } = theme;
  if (value === 'system') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = value;
}

export function chooseTheme(value: Theme): void {
  theme.value = value;
  // A browser may refuse storage: then it lasts as long as the page.
  try {
    localStorage.setItem(key, value);
  } catch {}
  applyTheme();
}

function readTheme(): Theme {
  try {
    const kept = localStorage.getItem(key);
    return kept === 'light' || kept === 'dark' ? kept : 'system';
  } catch {
    return 'system';
  }
}
