import { useState } from 'preact/hooks';
import type { Registration } from '../../api/types.ts';
import { t } from '../../text/t.ts';
import { AccessFacts, Snippets } from './access-facts.tsx';
import { FirstMessage } from './first-message.tsx';
import { firstMessageOf, type TemplateName } from './templates.ts';

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
