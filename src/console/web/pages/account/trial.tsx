import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { tryContacts } from '../../api/account.ts';
import { reload } from '../../api/cache.ts';
import type { TrialAnswer } from '../../api/types.ts';
import { Problem } from '../../parts/problem.tsx';
import { t } from '../../text/t.ts';
import type { Entry } from './contact-lists.ts';
import type { Trial } from './outcome.tsx';

export type TrialState = {
  isWaiting: boolean;
  error: unknown;
  send: () => void;
  of: (entry: Entry) => Trial;
  hasArrived: (entries: Entry[]) => boolean;
};

/** A message to all contacts; what became of each is told as it happens. */
export function useTrial(): TrialState {
  const [answer, setAnswer] = useState<TrialAnswer | null>(null);
  const [isWaiting, setIsWaiting] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const of = ({ address }: Entry): Trial => {
    const found = answer?.messages.find((each) => (each.address ?? each.url) === address);
    if (!found || !answer) return null;
    const heldBack = found.state === 'held-back' ? (found.reason ?? 'fault') : null;
    return { sentTs: answer.timestamp, type: found.type, heldBack };
  };
  const run = async () => {
    setError(null);
    setIsWaiting(true);
    try {
      setAnswer(await tryContacts());
    } catch (thrown) {
      setError(thrown);
    }
    setIsWaiting(false);
    reload('account/contacts');
  };
  return {
    isWaiting,
    error,
    of,
    send: () => void run(),
    hasArrived: (entries) =>
      entries.every((entry) => {
        const trial = of(entry);
        return trial === null || trial.heldBack || (entry.last?.timestamp ?? 0) >= trial.sentTs;
      }),
  };
}

type PanelProps = { trial: TrialState; entries: Entry[]; children: ComponentChildren };

/** The button that sends one, beside what else can be done with the list. */
export function TrialPanel({ trial, entries, children }: PanelProps) {
  return (
    <div class="rows-foot">
      <Problem error={trial.error} />
      <div class="rows-buttons">
        {children}
        <button
          type="button"
          class="button"
          disabled={trial.isWaiting || !trial.hasArrived(entries)}
          onClick={trial.send}
        >
          {t('contacts.try')}
        </button>
      </div>
    </div>
  );
}
