import { useState } from 'preact/hooks';
import { getContacts } from '../../api/account.ts';
import { reload, useQuery } from '../../api/cache.ts';
import { getConfiguration, nameOfSense } from '../../api/devices.ts';
import { installPurpose } from '../../api/events.ts';
import type { Contacts, DescribedDevice, Purpose, Sense } from '../../api/types.ts';
import { navigate } from '../../app/router.ts';
import { Confirm } from '../../parts/dialog.tsx';
import { Form, Submit, textOf, useForm } from '../../parts/form.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Link } from '../../parts/link.tsx';
import { Answered, say } from '../../parts/panel.tsx';
import { t } from '../../text/t.ts';
import { isAllOf, isEmpty, noRules, purposeOf, type Rules, rulesIn } from './rules.ts';

/** The simplest alarms of a device: its values outside limits, and silence. */
export function WatchPage({ uuid }: { uuid: string }) {
  const query = useQuery(`configuration/${uuid}`, (signal) => getConfiguration(uuid, signal));
  return (
    <>
      <p class="crumb">
        <Link to={`devices/${uuid}`} class="link">
          <Icon name="back" />
          {t('watch.back')}
        </Link>
      </p>
      <div class="head">
        <h1>{t('watch.title')}</h1>
      </div>
      <Answered query={query} lines={6}>
        {(device) => {
          const purposes = purposesOf(device);
          const rules = purposes.length === 0 ? noRules : rulesIn(purposes);
          const isAll = rules !== null && isAllOf(rules, purposes);
          return (
            <div class="watch">
              <WatchForm
                uuid={uuid}
                name={device.device.name ?? ''}
                senses={device.module.flatMap(({ senses }) => senses)}
                rules={rules ?? noRules}
                replaces={isAll ? [] : purposes}
              />
              <WhoIsTold />
            </div>
          );
        }}
      </Answered>
    </>
  );
}

/** What was installed last, whether or not the device has accepted it. */
function purposesOf({ currentProfile, pendingProfile }: DescribedDevice): Purpose[] {
  if ('purposes' in pendingProfile) return pendingProfile.purposes;
  return 'purposes' in currentProfile ? currentProfile.purposes : [];
}

type FormProps = {
  uuid: string;
  name: string;
  senses: Sense[];
  rules: Rules;
  /** Purposes that contain more than this page can show; saving replaces them. */
  replaces: readonly Purpose[];
};

const silences = [0, 900_000, 3_600_000, 21_600_000, 86_400_000] as const;

/** An upper and a lower limit for each sense, and how long silence may last. */
export function WatchForm({ uuid, name, senses, rules, replaces }: FormProps) {
  const [isNothing, setIsNothing] = useState(false);
  const [asking, setAsking] = useState<Rules | null>(null);
  const save = async (chosen: Rules) => {
    await installPurpose(uuid, purposeOf(chosen, senses));
    reload(`configuration/${uuid}`);
    const hasSomebody = readyIn(await getContacts()).length > 0;
    say(t(hasSomebody ? 'watch.saved' : 'watch.savedForNobody'));
    navigate(hasSomebody ? `devices/${uuid}` : 'account/contacts');
  };
  const form = useForm(async (values) => {
    const chosen = readRules(values, senses);
    setIsNothing(isEmpty(chosen));
    if (isEmpty(chosen)) return;
    if (replaces.length > 0) setAsking(chosen);
    else await save(chosen);
  });
  return (
    <section class="panel">
      <p class="watch-name">{name || t('fleet.unnamed')}</p>
      {replaces.length > 0 && <p class="notice">{t('watch.replaces')}</p>}
      <Form form={form}>
        {isNothing && (
          <p class="form-error" role="alert">
            {t('watch.nothing')}
          </p>
        )}
        {senses.map((sense) => (
          <Limits key={sense.sId} sense={sense} rules={rules} />
        ))}
        <label class="field">
          <span>{t('watch.silent')}</span>
          <select name="silent">
            {[...new Set([...silences, rules.silentMs])].map((ms) => (
              <option key={ms} value={ms} selected={ms === rules.silentMs}>
                {silenceText(ms)}
              </option>
            ))}
          </select>
        </label>
        <p class="fine">{t('watch.hint')}</p>
        <div>
          <Submit form={form}>{t('watch.save')}</Submit>
        </div>
      </Form>
      {asking && (
        <Confirm
          title={t('watch.replaceTitle')}
          action={t('watch.replace')}
          onCancel={() => setAsking(null)}
          onConfirm={() => save(asking)}
        >
          <p>{t('watch.replaceHint')}</p>
          <ul class="watch-lost">
            {replaces.map(({ puId, name }) => (
              <li key={puId}>{name ?? t('watch.purpose', { puId })}</li>
            ))}
          </ul>
        </Confirm>
      )}
    </section>
  );
}

function silenceText(ms: number): string {
  if (ms === 0) return t('watch.silent.never');
  if (ms < 3_600_000) return t('watch.silent.minutes', { minutes: Math.round(ms / 60_000) });
  return t('watch.silent.hours', { hours: Math.round(ms / 3_600_000) });
}

function Limits({ sense, rules }: { sense: Sense; rules: Rules }) {
  const { sId, unit } = sense;
  const name = nameOfSense(sId, sense);
  const input = (which: 'below' | 'above') => (
    <label class="watch-limit">
      <span>{t(`watch.${which}`)}</span>
      <input
        type="number"
        step="any"
        inputMode="decimal"
        name={`${which}:${sId}`}
        defaultValue={String(rules[which][sId] ?? '')}
        aria-label={`${name}: ${t(`watch.${which}`)}${unit ? ` (${unit})` : ''}`}
      />
      {unit !== undefined && <span class="muted">{unit}</span>}
    </label>
  );
  return (
    <fieldset class="watch-sense">
      <legend>{name}</legend>
      <div>
        {input('below')}
        {input('above')}
      </div>
    </fieldset>
  );
}

function readRules(values: FormData, senses: Sense[]): Rules {
  const limits = (which: 'above' | 'below') =>
    Object.fromEntries(
      senses.flatMap(({ sId }) => {
        const text = textOf(values, `${which}:${sId}`);
        return text === '' ? [] : [[sId, Number(text)] as const];
      }),
    );
  const silentMs = Number(textOf(values, 'silent'));
  return { above: limits('above'), below: limits('below'), silentMs };
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
