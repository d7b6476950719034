import { useState } from 'preact/hooks';
import { getContacts } from '../../api/account.ts';
import { reload, useQuery } from '../../api/cache.ts';
import {
  getConfiguration,
  getDevice,
  listLabelLimits,
  sensesOf,
  startAction,
} from '../../api/devices.ts';
import { installPurposes } from '../../api/events.ts';
import { useLatest } from '../../api/measurements.ts';
import type { Contacts, DescribedDevice, Purpose } from '../../api/types.ts';
import { navigate } from '../../app/router.ts';
import { Confirm } from '../../parts/dialog.tsx';
import { BackLink, Link } from '../../parts/link.tsx';
import { Answered, Problem, say } from '../../parts/panel.tsx';
import { t } from '../../text/t.ts';
import { LimitsForm } from './limits-form.tsx';
import { limitsIn } from './numbers.ts';
import { NumbersForm } from './numbers-form.tsx';
import { noRules, purposeOf, rulesIn } from './rules.ts';

/** The alarms of a device: limits of its values, how fast they change, and silence. */
export function WatchPage({ uuid }: { uuid: string }) {
  const query = useQuery(`configuration/${uuid}`, (signal) => getConfiguration(uuid, signal));
  return (
    <>
      <BackLink to={`devices/${uuid}`}>{t('watch.toDevice')}</BackLink>
      <div class="head">
        <h1>{t('watch.title')}</h1>
      </div>
      <Answered query={query} lines={6}>
        {(device) => (
          <div class="watch">
            <section class="panel">
              <p class="watch-name">{device.device.name || t('fleet.unnamed')}</p>
              <WhoseLimits uuid={uuid} />
              <Alarms key={JSON.stringify(purposesOf(device))} uuid={uuid} device={device} />
            </section>
            <WhoIsTold />
          </div>
        )}
      </Answered>
    </>
  );
}

/** Whether its limits come from a label, and what becomes of that. */
function WhoseLimits({ uuid }: { uuid: string }) {
  const { data } = useQuery(`device/${uuid}`, (signal) => getDevice(uuid, signal));
  const { limitsFrom = null, labels = [] } = data?.device ?? {};
  const own = limitsFrom === 'own' && labels.length > 0;
  const { data: ofLabels = [] } = useQuery(own ? 'limits-of-labels' : 'limits-of-none', (signal) =>
    own ? listLabelLimits(signal) : Promise.resolve([]),
  );
  if (limitsFrom !== null && limitsFrom !== 'own')
    return <p class="notice">{t('watch.ofLabel', { label: limitsFrom.label })}</p>;
  const label = ofLabels.find((each) => labels.includes(each.label))?.label;
  return own && label !== undefined ? <OwnLimits uuid={uuid} label={label} /> : null;
}

/** Its label has limits, too: it can take them. */
function OwnLimits({ uuid, label }: { uuid: string; label: string }) {
  const [error, setError] = useState<unknown>(null);
  const take = async () => {
    setError(null);
    try {
      await startAction({ action: 'label-limits', deviceAuthUuids: [uuid] });
      say(t('watch.takesLabel', { label }));
      navigate(`devices/${uuid}`);
    } catch (thrown) {
      setError(thrown);
    }
  };
  return (
    <div class="notice">
      <p>{t('watch.ownLimits', { label })}</p>
      <button type="button" class="link" onClick={() => void take()}>
        {t('watch.takeLabel')}
      </button>
      {error !== null && <Problem error={error} />}
    </div>
  );
}

/** What was installed last, whether or not the device has accepted it. */
function purposesOf({ currentProfile, pendingProfile }: DescribedDevice): Purpose[] {
  if ('purposes' in pendingProfile) return pendingProfile.purposes;
  return 'purposes' in currentProfile ? currentProfile.purposes : [];
}

type AlarmsProps = { uuid: string; device: DescribedDevice };

/** A form for what this page wrote; the numbers of what others wrote; and what neither can show, as JSON. */
function Alarms({ uuid, device }: AlarmsProps) {
  const { data: latest = [] } = useLatest([uuid]);
  const [isReplacing, setIsReplacing] = useState(false);
  const purposes = purposesOf(device);
  const senses = sensesOf(device);
  const all = [...senses.values()];
  const rules = purposes.length === 0 || isReplacing ? noRules : rulesIn(purposes, all);
  const save = async (next: readonly Purpose[]) => {
    await installPurposes(uuid, next);
    reload(`configuration/${uuid}`);
    const hasSomebody = readyIn(await getContacts()).length > 0;
    say(t(hasSomebody ? 'watch.saved' : 'watch.savedForNobody'));
    navigate(hasSomebody ? `devices/${uuid}` : 'account/contacts');
  };
  if (rules)
    return (
      <>
        {isReplacing && <p class="notice">{t('watch.replaces')}</p>}
        <LimitsForm
          senses={all}
          rules={rules}
          latest={latest}
          onSave={(chosen) => save([purposeOf(chosen, all)])}
        />
      </>
    );
  const limits = limitsIn(purposes);
  return (
    <>
      {limits ? (
        <NumbersForm
          purposes={purposes}
          limits={limits}
          senses={senses}
          latest={latest}
          onSave={save}
        />
      ) : (
        <p class="notice">{t('watch.readOnly')}</p>
      )}
      <details class="more watch-json" open={limits === null}>
        <summary>{t('watch.json')}</summary>
        <pre tabIndex={0}>{JSON.stringify(purposes, null, 2)}</pre>
      </details>
      <Replace purposes={purposes} onReplace={() => setIsReplacing(true)} />
    </>
  );
}

/** Leads from a profile that somebody else wrote to simple limits; nothing changes before these are saved. */
function Replace({ purposes, onReplace }: { purposes: readonly Purpose[]; onReplace: () => void }) {
  const [isAsked, setIsAsked] = useState(false);
  return (
    <p>
      <button type="button" class="link" onClick={() => setIsAsked(true)}>
        {t('watch.replaceTitle')}
      </button>
      {isAsked && (
        <Confirm
          title={t('watch.replaceTitle')}
          action={t('watch.replace')}
          onCancel={() => setIsAsked(false)}
          onConfirm={async () => onReplace()}
        >
          <p>{t('watch.replaceHint')}</p>
          <ul class="watch-lost">
            {purposes.map(({ puId, name }) => (
              <li key={puId}>{name ?? t('watch.purpose', { puId })}</li>
            ))}
          </ul>
        </Confirm>
      )}
    </p>
  );
}

/** Who is notified: confirmed addresses, and webhooks. */
export function readyIn({ emails, webhooks }: Contacts): string[] {
  const confirmed = emails.filter(({ confirmed }) => confirmed);
  return [...confirmed.map(({ address }) => address), ...webhooks.map(({ url }) => url)];
}

/** Who receives the messages: an alarm that nobody hears of is useless. */
export function WhoIsTold() {
  const query = useQuery('account/contacts', getContacts);
  return (
    <section class="panel" aria-labelledby="who">
      <h2 id="who">{t('watch.who')}</h2>
      <Answered query={query}>
        {(contacts) => {
          const ready = readyIn(contacts);
          return (
            <>
              {ready.length === 0 ? (
                <p class="notice watch-nobody">
                  {t(contacts.emails.length === 0 ? 'watch.nobody' : 'watch.unconfirmed')}
                </p>
              ) : (
                <ul class="watch-who">
                  {ready.map((address) => (
                    <li key={address}>{address}</li>
                  ))}
                </ul>
              )}
              <Link to="account/contacts" class="button">
                {t(contacts.emails.length === 0 ? 'watch.addContact' : 'watch.contacts')}
              </Link>
            </>
          );
        }}
      </Answered>
    </section>
  );
}
