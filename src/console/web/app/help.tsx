import { Dialog } from '../parts/dialog.tsx';
import { t } from '../text/t.ts';
import { allowShortcuts, goKeys, hasShortcuts, isHelpOpen } from './keyboard.ts';

/** Which keys do what, and whether they do. */
export function Help() {
  if (!isHelpOpen.value) return null;
  const close = () => (isHelpOpen.value = false);
  const rows = [
    { keys: ['/'], text: t('keys.search') },
    ...goKeys.map(({ key, label }) => ({ keys: ['g', key], text: t(label) })),
    { keys: ['?'], text: t('keys.help') },
  ];
  return (
    <Dialog title={t('keys.title')} onClose={close}>
      <dl class="keys">
        {rows.map(({ keys, text }) => (
          <div key={text}>
            <dt>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      <label class="check">
        <input
          type="checkbox"
          checked={hasShortcuts.value}
          onChange={({ currentTarget }) => allowShortcuts(currentTarget.checked)}
        />
        <span>{t('keys.allow')}</span>
      </label>
      <div class="dialog-buttons">
        <button type="button" class="button" onClick={close}>
          {t('common.close')}
        </button>
      </div>
    </Dialog>
  );
}
