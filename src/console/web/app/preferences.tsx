import { signal } from '@preact/signals';
import { describeProblem, say } from '../parts/panel.tsx';
import { language, type Language, languages, t } from '../text/t.ts';
import { chooseLanguage } from './session.ts';

const themes: Theme[] = ['system', 'light', 'dark'];
const names: Record<Language, string> = { en: 'English', de: 'Deutsch' };

/** Appearance and language. */
export function Preferences() {
  return (
    <div class="preferences">
      <label class="field">
        <span>{t('theme.label')}</span>
        <select
          value={theme.value}
          onChange={({ currentTarget }) => chooseTheme(currentTarget.value as Theme)}
        >
          {themes.map((each) => (
            <option key={each} value={each}>
              {t(`theme.${each}`)}
            </option>
          ))}
        </select>
      </label>
      <label class="field">
        <span>{t('language.label')}</span>
        <select
          value={language.value}
          onChange={({ currentTarget }) => choose(currentTarget.value as Language)}
        >
          {languages.map((each) => (
            <option key={each} value={each} lang={each}>
              {names[each]}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}

const choose = (next: Language) =>
  void chooseLanguage(next).catch((error: unknown) => say(describeProblem(error)));

type Theme = 'system' | 'light' | 'dark';

const key = 'sensorium-theme';

/** The colours of tokens.css. */
const colors = (
  'bg panel hover ink muted border line shade accent accent-soft on-accent ok ' +
  'ok-soft bad bad-soft warn warn-soft series-1 series-1-band series-2 series-3 series-4'
).split(' ');

/** The chosen theme. Besides it, local storage contains only whether keyboard shortcuts are on. */
export const theme = signal<Theme>(readTheme());

/** Registered as colours, not as text: so a script that reads one gets the current theme's value. */
export function registerColors(): void {
  for (const name of colors)
    CSS.registerProperty({
      name: `--${name}`,
      syntax: '<color>',
      inherits: true,
      initialValue: 'transparent',
    });
}

export function applyTheme(): void {
  const { value } = theme;
  if (value === 'system') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = value;
}

function chooseTheme(value: Theme): void {
  theme.value = value;
  // If the browser refuses storage, the choice lasts as long as the page.
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
