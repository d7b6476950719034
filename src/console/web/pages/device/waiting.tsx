import type { Purpose, Sense } from '../../api/types.ts';
import { Icon } from '../../parts/icon.tsx';
import { Link } from '../../parts/link.tsx';
import { formatFullTime, formatTime } from '../../text/format.ts';
import { count, t } from '../../text/t.ts';
import { sayChanges } from './changes.ts';
import { nameOfPurpose, sayWhen } from './purposes.tsx';
import { sayNames, toTab } from './tab.ts';

type Installed = { purposes: readonly Purpose[]; ts: number };

type WaitingProps = {
  pending: Installed;
  /** What is in force until the device accepts the other one; null: nothing. */
  current: Installed | null;
  senses: ReadonlyMap<string, Sense>;
};

/** A profile that the device has not accepted yet: what it changes, since when it waits, and what is in force. */
export function Waiting({ pending, current, senses }: WaitingProps) {
  const former = current?.purposes ?? [];
  const isSame = (one: Purpose, other: Purpose) => nameOfPurpose(one) === nameOfPurpose(other);
  const comes = pending.purposes.flatMap((purpose) => {
    const before = former.find((one) => isSame(one, purpose));
    return before ? sayChanges(before, purpose, senses) : sayAll([purpose], senses);
  });
  const gone = former.filter((one) => !pending.purposes.some((purpose) => isSame(one, purpose)));
  const goes = gone.length === 0 ? [] : [t('install.goes', { names: sayNames(gone) })];
  return (
    <section class="panel profile-waits" aria-label={t('waiting.title')}>
      <Icon name="clock" />
      <div>
        <p title={formatFullTime(pending.ts)}>
          {t('waiting.since', { time: formatTime(pending.ts) })}
        </p>
        <Lines said={[...goes, ...comes]} />
        <p>{t('waiting.inForce')}</p>
        <Lines said={sayAll(former, senses)} />
        <Link to={toTab('profile')} class="link">
          {t('device.profile')}
        </Link>
      </div>
    </section>
  );
}

/** When the events of purposes fire. */
const sayAll = (purposes: readonly Purpose[], senses: WaitingProps['senses']) =>
  purposes
    .flatMap(({ states }) => states.flatMap(({ events }) => events))
    .map((event) => sayWhen(event, senses));

/** A profile may have thousands of events: the others are on the tab. */
const mostLines = 10;

function Lines({ said }: { said: readonly string[] }) {
  const texts = [...new Set(said)];
  const shown = texts.length === 0 ? [t('waiting.nothing')] : texts.slice(0, mostLines);
  return (
    <ul>
      {shown.map((text) => (
        <li key={text}>{text}</li>
      ))}
      {texts.length > mostLines && <li>{count('fleet.more', texts.length - mostLines)}</li>}
    </ul>
  );
}
