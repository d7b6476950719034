import { useEffect, useRef, useState } from 'preact/hooks';
import { useQuery } from '../../api/cache.ts';
import {
  listRefusedLogins,
  listRejections,
  nameOfSense,
  type Protocol,
  registerDevice,
  sensesOf,
} from '../../api/devices.ts';
import { useLatest } from '../../api/measurements.ts';
import type { Registration } from '../../api/types.ts';
import { textOf } from '../../parts/form.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Link } from '../../parts/link.tsx';
import { Problem } from '../../parts/panel.tsx';
import { Rejections } from '../../parts/rejections.tsx';
import { formatValue } from '../../text/format.ts';
import { t } from '../../text/t.ts';
import { RefusedLogins } from '../device/refused-tab.tsx';
import { AccessFacts, Snippets } from './access-facts.tsx';
import {
  configurationOf,
  firstMessageOf,
  type TemplateName,
  templateNames,
  templates,
} from './templates.ts';

const protocols: readonly Protocol[] = ['mqtt', 'http'];

/** Registers a device, and stays until its first value has arrived. */
export function AddPage() {
  const [added, setAdded] = useState<Added | null>(null);
  return added ? <Connect {...added} /> : <AddForm onAdded={setAdded} />;
}

function AddForm({ onAdded }: { onAdded: (added: Added) => void }) {
  const [template, setTemplate] = useState<TemplateName>('temperature');
  const [protocol, setProtocol] = useState<Protocol>('mqtt');
  const [isBusy, setIsBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const add = async (event: SubmitEvent) => {
    event.preventDefault();
    const name = textOf(new FormData(event.currentTarget as HTMLFormElement), 'name').trim();
    setIsBusy(true);
    try {
      const registration = await registerDevice({
        ...configurationOf(template, name),
        // MQTT is the service's default where it is available.
        ...(protocol === 'http' ? { protocol } : {}),
      });
      onAdded({ name, template, registration });
    } catch (thrown) {
      setError(thrown);
      setIsBusy(false);
    }
  };
  return (
    <form class="add" onSubmit={(event) => void add(event)}>
      <div class="head">
        <h1>{t('add.title')}</h1>
      </div>
      <Problem error={error} />
      <fieldset class="panel">
        <legend>{t('add.what')}</legend>
        <div class="templates">
          {templateNames.map((each) => (
            <label key={each} class="template">
              <input
                type="radio"
                name="template"
                checked={each === template}
                onChange={() => setTemplate(each)}
              />
              <span class="template-name">{t(`template.${each}`)}</span>
              <span class="fine">{sensesIn(each)}</span>
            </label>
          ))}
        </div>
      </fieldset>
      <fieldset class="panel">
        <legend>{t('add.how')}</legend>
        <div class="templates">
          {protocols.map((each) => (
            <label key={each} class="template">
              <input
                type="radio"
                name="protocol"
                checked={each === protocol}
                onChange={() => setProtocol(each)}
              />
              <span class="template-name">{t(`protocol.${each}`)}</span>
              <span class="fine">{t(`protocol.${each}.hint`)}</span>
            </label>
          ))}
        </div>
      </fieldset>
      <div class="panel add-name">
        <label class="field">
          <span>{t('add.name')}</span>
          <input
            name="name"
            required
            maxLength={200}
            autocomplete="off"
            aria-describedby="name-hint"
            placeholder={t('add.namePlaceholder', { example: t(`example.${template}`) })}
          />
        </label>
        <p class="fine" id="name-hint">
          {t('add.nameHint')}
        </p>
        <button type="submit" class="button button-main" disabled={isBusy}>
          <Icon name="plus" />
          {t('add.submit')}
        </button>
      </div>
    </form>
  );
}

function sensesIn(template: TemplateName): string {
  const names = templates[template].map(({ text, unit }) =>
    unit === undefined ? t(text) : `${t(text)}\u00a0(${unit})`,
  );
  return names.join(', ');
}

export type Added = { name: string; template: TemplateName; registration: Registration };

/** What a device needs to connect, and whether it did. */
export function Connect({ name, template, registration }: Added) {
  const [isShown, setIsShown] = useState(false);
  return (
    <div class="connect">
      <div class="head">
        <h1>{t('connect.title', { name })}</h1>
      </div>
      <section class="panel" aria-labelledby="step-1">
        <h2 id="step-1" class="step">
          <span class="step-number">1</span>
          {t('connect.step1')}
        </h2>
        <AccessFacts access={registration} isShown={isShown} onShow={setIsShown} />
      </section>
      <section class="panel" aria-labelledby="step-2">
        <h2 id="step-2" class="step">
          <span class="step-number">2</span>
          {t('connect.step2')}
        </h2>
        <Snippets access={registration} message={firstMessageOf(template)} isShown={isShown} />
      </section>
      <FirstMessage uuid={registration.deviceAuthUuid} template={template} />
    </div>
  );
}

const everyMs = 2_000;

/** Waits for the first value, and shows refusals as they happen. */
export function FirstMessage({ uuid, template }: { uuid: string; template: TemplateName }) {
  const { data: latest = [] } = useLatest([uuid]);
  const { data: rejections = [] } = useQuery(
    `rejections/${uuid}`,
    (signal) => listRejections(uuid, signal),
    { everyMs },
  );
  const { data: logins = [] } = useQuery(
    `logins/${uuid}`,
    (signal) => listRefusedLogins(uuid, signal),
    { everyMs },
  );
  const senses = sensesOf(configurationOf(template, ''));
  const hasArrived = latest.length > 0;
  // Refusals from before it worked are in the device's own list.
  const newestTs = Math.max(0, ...latest.map(({ ts }) => ts));
  const refused = rejections.filter(({ timestamp }) => timestamp > newestTs);
  const box = useRef<HTMLElement>(null);
  const hasNews = hasArrived || refused.length > 0 || logins.length > 0;
  // The panel grows below the edge of the screen, where the awaited news would go unseen.
  useEffect(() => {
    if (hasNews) box.current?.scrollIntoView({ block: 'nearest' });
  }, [hasNews, hasArrived]);
  return (
    <section
      ref={box}
      class={hasArrived ? 'panel first-panel panel-done' : 'panel first-panel'}
      aria-labelledby="step-3"
    >
      <h2 id="step-3" class="step">
        <span class="step-number">{hasArrived ? <Icon name="check" /> : 3}</span>
        {t('connect.step3')}
      </h2>
      <div role="status" class="first">
        {hasArrived ? (
          <>
            <p>{t('connect.arrived')}</p>
            <ul class="first-values">
              {latest.map(({ sId, val }) => (
                <li key={sId}>
                  <span class="fine">{nameOfSense(sId, senses.get(sId))}</span>
                  <span class="value">{formatValue(val, senses.get(sId))}</span>
                </li>
              ))}
            </ul>
          </>
        ) : (
          <>
            <p class="waiting">{t('connect.waiting')}</p>
            <p class="fine">{t('connect.waitingHint')}</p>
          </>
        )}
      </div>
      {!hasArrived && logins.length > 0 && (
        <>
          <p class="first-refused">{t('connect.loginRefused')}</p>
          <RefusedLogins logins={logins.slice(0, 3)} />
        </>
      )}
      {refused.length > 0 && (
        <>
          <p class="first-refused">{t('connect.refused')}</p>
          <Rejections rejections={refused.slice(0, 5)} senses={senses} uuid={uuid} />
        </>
      )}
      {hasArrived && (
        <p class="first-next">
          <Link to={`devices/${uuid}`} class="button button-main">
            {t('connect.open')}
          </Link>
          <Link to={`watch/${uuid}`} class="button">
            {t('watch.open')}
          </Link>
        </p>
      )}
    </section>
  );
}
