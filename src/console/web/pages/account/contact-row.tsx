import { useState } from 'preact/hooks';
import type { Contacts, ContactsUpdate } from '../../api/types.ts';
import { CopyText } from '../../parts/copy.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Ago } from '../../parts/status.tsx';
import { type Key, t, tryText } from '../../text/t.ts';

type RowProps = {
  entry: Entry;
  trial: Trial;
  hasMail: boolean;
  onEdit: () => void;
  onRemove: () => void;
};

/** A contact: what it is notified of, whether it can be, and how the last attempt ended. */
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

/** Delays that the page does not offer were set through the API. */
export function delayText(afterMs: number): Key & `contacts.after.${string}` {
  const known: Record<number, 'now' | '5m' | '15m' | '1h'> = delays;
  return `contacts.after.${known[afterMs] ?? 'other'}`;
}

/** The secret that receivers check signatures with; hidden until it is asked for. */
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

/** A test message to one contact; null if this page has not sent one. */
export type Trial = { sentTs: number; type: 'test' | 'confirm'; heldBack: string | null } | null;

/** How the last attempt to reach a contact ended, or how the test is going. */
function Outcome({ entry: { last, state: confirmation }, trial }: { entry: Entry; trial: Trial }) {
  if (trial?.heldBack)
    return <Line look="bad" text={t('contacts.heldBack', { why: whyOf(trial.heldBack) })} />;
  const isOfTrial = trial !== null && last !== undefined && last.timestamp >= trial.sentTs;
  if (trial !== null && !isOfTrial) return <Line look="busy" text={t('contacts.trying')} />;
  if (last === undefined) {
    const isAsked = confirmation === 'waiting';
    return <p class="fine outcome">{t(isAsked ? 'contacts.linkQueued' : 'contacts.neverTold')}</p>;
  }
  const { state, reason = '', timestamp } = last;
  if (state === 'sent')
    return <Line look="ok" text={t(sentText(isOfTrial ? trial : null))} ts={timestamp} />;
  const key = state === 'queued' ? 'contacts.again' : 'contacts.failed';
  return <Line look="bad" text={t(key, { why: whyOf(reason) })} ts={timestamp} />;
}

function sentText(trial: Trial) {
  if (trial === null) return 'contacts.lastSent';
  return trial.type === 'confirm' ? 'contacts.linkSent' : 'contacts.trialSent';
}

const whyOf = (reason: string) =>
  tryText(`delivery.why.${reason}`, reason || t('delivery.why.fault'));

type LineProps = { look: 'ok' | 'bad' | 'busy'; text: string; ts?: number };

function Line({ look, text, ts }: LineProps) {
  return (
    <p class={`outcome outcome-${look}`}>
      {look !== 'busy' && <Icon name={look === 'ok' ? 'check' : 'warn'} />}
      <span>
        {text}
        {ts !== undefined && (
          <>
            {' '}
            <span class="muted">
              <Ago ts={ts} />
            </span>
          </>
        )}
      </span>
    </p>
  );
}

type Last = NonNullable<Contacts['emails'][number]['last']>;

/** A contact of the account, of either kind. */
export type Entry = {
  kind: 'email' | 'webhook';
  /** An e-mail address, or a URL. */
  address: string;
  labels: string[];
  afterMs: number;
  whenOver: boolean;
  /** Only what is at least as bad. */
  minSeverity: Contacts['emails'][number]['minSeverity'];
  /** A webhook needs no confirmation. */
  state: 'confirmed' | 'waiting' | 'unsubscribed';
  /** Signs the webhook's messages. */
  secret?: string;
  last?: Last | undefined;
};

export function entriesOf({ emails, webhooks }: Contacts): Entry[] {
  return [
    ...emails.map(({ confirmed, unsubscribed, ...rest }): Entry => {
      const state = confirmed ? 'confirmed' : unsubscribed ? 'unsubscribed' : 'waiting';
      return { ...rest, kind: 'email', state };
    }),
    ...webhooks.map(({ url, ...rest }): Entry => ({
      ...rest,
      kind: 'webhook',
      address: url,
      state: 'confirmed',
    })),
  ];
}

/** Both lists as they are sent: without what only the service knows. */
export function listsOf(entries: Entry[]): ContactsUpdate {
  const of = (kind: Entry['kind']) => entries.filter((entry) => entry.kind === kind);
  return {
    emails: of('email').map(({ address, labels, afterMs, whenOver, minSeverity }) => {
      return { address, labels, afterMs, whenOver, minSeverity };
    }),
    webhooks: of('webhook').map(({ address: url, labels, afterMs, whenOver, minSeverity }) => {
      return { url, labels, afterMs, whenOver, minSeverity };
    }),
  };
}
