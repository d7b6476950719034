import { useState } from 'preact/hooks';
import type { Registration } from '../../api/types.ts';
import { CopyText } from '../../parts/copy.tsx';
import { Qr } from '../../parts/qr.tsx';
import { t } from '../../text/t.ts';
import { publishCommand, qrText } from './snippets.ts';
import { firstMessageOf, type TemplateName } from './templates.ts';
import { FirstMessage } from './first-message.tsx';

export type Added = { name: string; template: TemplateName; registration: Registration };

/** What a device needs to connect, and whether it did. */
export function Connect({ name, template, registration }: Added) {
  const [isShown, setIsShown] = useState(false);
  const { host, port, protocol, deviceAuthUuid: uuid, deviceAuthToken: token } = registration;
  const command = publishCommand(registration, firstMessageOf(template), isShown);
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
        <div class="connect-access">
          <dl class="facts">
            <Fact label={t('connect.host')} value={host} />
            <Fact label={t('connect.port')} value={`${port} (${protocol})`} />
            <Fact label={t('connect.user')} value={uuid} />
            <Fact label={t('connect.token')} value={isShown ? token : '•'.repeat(12)} />
          </dl>
          {isShown && <Qr text={qrText(registration)} label={t('connect.qr')} />}
        </div>
        <p class="connect-reveal">
          <button
            type="button"
            class="button"
            aria-expanded={isShown}
            onClick={() => setIsShown(!isShown)}
          >
            {t(isShown ? 'connect.hideToken' : 'connect.showToken')}
          </button>
          <span class="fine">{t('connect.tokenHint')}</span>
        </p>
      </section>
      <section class="panel" aria-labelledby="step-2">
        <h2 id="step-2" class="step">
          <span class="step-number">2</span>
          {t('connect.step2')}
        </h2>
        <p class="fine">{t('connect.step2Hint')}</p>
        <CopyText
          label={t('connect.step2')}
          text={command}
          copied={publishCommand(registration, firstMessageOf(template), true)}
        />
      </section>
      <FirstMessage uuid={uuid} template={template} />
    </div>
  );
}

function Fact({ label, value }: { label: string; value: string }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{value}</dd>
    </div>
  );
}
