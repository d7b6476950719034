import type { Purpose, Sense } from '../../api/types.ts';
import { Icon } from '../../parts/icon.tsx';
import { Link } from '../../parts/link.tsx';
import { formatFullTime, formatTime } from '../../text/format.ts';
import { t } from '../../text/t.ts';
import { sayWhen } from './purposes.tsx';
import { toTab } from './tab.ts';

type Installed = { purposes: readonly Purpose[]; ts: number };

type WaitingProps = {
  pending: Installed;
  /** What is in force until the device accepts the other one; null: nothing. */
  current: Installed | null;
  senses: ReadonlyMap<string, Sense>;
};

/** A profile that the device has not accepted yet: what it will watch, since when it waits, and what is in force. */
export function Waiting({ pending, current, senses }: WaitingProps) {
  const said = (profile: Installed | null) =>
    (profile?.purposes ?? [])
      .flatMap(({ states }) => states.flatMap(({ events }) => events))
      .map((event) => sayWhen(event, senses));
  const [next, inForce] = [said(pending), said(current)];
  return (
    <section class="notice waiting" aria-label={t('waiting.title')}>
      <Icon name="clock" />
      <div>
        <p title={formatFullTime(pending.ts)}>
          {t('waiting.since', { time: formatTime(pending.ts) })}
        </p>
        <Conditions said={next} none={t('waiting.nothing')} />
        <p>{t('waiting.inForce')}</p>
        <Conditions said={inForce} none={t('waiting.nothing')} />
        <Link to={toTab('profile')} class="link">
          {t('device.profile')}
        </Link>
      </div>
    </section>
  );
}

function Conditions({ said, none }: { said: readonly string[]; none: string }) {
  const texts = [...new Set(said)];
  return (
    <ul>
      {(texts.length === 0 ? [none] : texts).map((text) => (
        <li key={text}>{text}</li>
      ))}
    </ul>
  );
}
