import { useState } from 'preact/hooks';
import { registerDevice, type Protocol } from '../../api/devices.ts';
import { Icon } from '../../parts/icon.tsx';
import { Problem } from '../../parts/problem.tsx';
import { t } from '../../text/t.ts';
import { textOf } from '../../parts/use-form.ts';
import { Connect, type Added } from './connect.tsx';
import { configurationOf, templateNames, templates, type TemplateName } from './templates.ts';

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
        // MQTT is what the service takes for it by itself, where it can.
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
