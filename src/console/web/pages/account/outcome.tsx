import { Icon } from '../../parts/icon.tsx';
import { Ago } from '../../parts/status.tsx';
import { t, tryText } from '../../text/t.ts';
import type { Entry } from './contact-lists.ts';

/** A trial message to one contact; null: none was sent on this page. */
export type Trial = { sentTs: number; type: 'test' | 'confirm'; heldBack: string | null } | null;

/** How the last attempt to reach a contact ended, or how the trial goes on. */
export function Outcome({
  entry: { last, state: confirmation },
  trial,
}: {
  entry: Entry;
  trial: Trial;
}) {
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

const whyOf = (reason: string) => tryText(`reason.${reason}`, reason || t('reason.fault'));

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
