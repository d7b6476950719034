import { useState } from 'preact/hooks';
import { CopyText } from '../../parts/copy.tsx';
import { Icon } from '../../parts/icon.tsx';
import { t, type Key } from '../../text/t.ts';
import type { Entry } from './contact-lists.ts';
import { Outcome, type Trial } from './outcome.tsx';

type RowProps = {
  entry: Entry;
  trial: Trial;
  hasMail: boolean;
  onEdit: () => void;
  onRemove: () => void;
};

/** A contact: what it is told, whether it can be, and how the last attempt ended. */
export function ContactRow({ entry, trial, hasMail, onEdit, onRemove }: RowProps) {
  const { kind, address, state, labels, afterMs, whenOver, secret } = entry;
  return (
    <li class="row">
      <span class="row-icon">
        <Icon name={kind === 'email' ? 'mail' : 'hook'} />
      </span>
      <div class="row-text">
        <p class="row-title">
          <span class="row-address">{address}</span>
          {state !== 'confirmed' && <span class="tag tag-warn">{t(`contacts.${state}`)}</span>}
        </p>
        {state !== 'confirmed' && (
          <p class="fine">{t(hasMail ? `contacts.${state}Hint` : 'contacts.noMail')}</p>
        )}
        <p class="fine">
          <span class="row-part">{t('contacts.rowWhen', { when: t(delayText(afterMs)) })}</span>
          {labels.length > 0 && (
            <span class="row-part">{t('contacts.onlyLabels', { labels: labels.join(', ') })}</span>
          )}
          {whenOver && <span class="row-part">{t('contacts.whenOver')}</span>}
        </p>
        {(hasMail || kind === 'webhook') && <Outcome entry={entry} trial={trial} />}
        {secret !== undefined && <Secret secret={secret} />}
      </div>
      <div class="row-buttons">
        <button
          type="button"
          class="button"
          aria-label={t('contacts.edit', { address })}
          onClick={onEdit}
        >
          {t('contacts.change')}
        </button>
        <button
          type="button"
          class="button"
          aria-label={t('contacts.removeTitle', { address })}
          onClick={onRemove}
        >
          {t('contacts.remove')}
        </button>
      </div>
    </li>
  );
}

export const delays = { 0: 'now', 300_000: '5m', 900_000: '15m', 3_600_000: '1h' } as const;

/** Another delay than the page offers was set through the interface. */
export function delayText(afterMs: number): Key & `contacts.after.${string}` {
  const known: Record<number, 'now' | '5m' | '15m' | '1h'> = delays;
  return `contacts.after.${known[afterMs] ?? 'other'}`;
}

/** What receivers check signatures with: not on the screen before it is asked for. */
function Secret({ secret }: { secret: string }) {
  const [isShown, setIsShown] = useState(false);
  return (
    <div class="contact-secret">
      <button
        type="button"
        class="link"
        aria-expanded={isShown}
        onClick={() => setIsShown(!isShown)}
      >
        {t(isShown ? 'contacts.hideSecret' : 'contacts.showSecret')}
      </button>
      {isShown && <CopyText text={secret} label={t('contacts.secret')} />}
    </div>
  );
}
