import { languages, language, t, type Language } from '../text/t.ts';
import { chooseLanguage } from './session.ts';
import { chooseTheme, theme, type Theme } from './theme.ts';

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
          onChange={({ currentTarget }) => void chooseLanguage(currentTarget.value as Language)}
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
