import { makeKey } from '../../api/account.ts';
import type { ApiError } from '../../api/request.ts';
import type { MadeKey } from '../../api/types.ts';
import { now } from '../../app/now.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { Field, Form, Submit } from '../../parts/form.tsx';
import { isWrong, textOf, useForm, type Refusal } from '../../parts/use-form.ts';
import { t } from '../../text/t.ts';
import { labelsIn } from './contact-dialog.tsx';
import { scopeHint, scopes, scopeText, type Scope } from './scopes.ts';

const dayMs = 86_400_000;
const lives = [30, 90, 365, 0] as const;

type DialogProps = { onClose: () => void; onMade: (key: MadeKey & { name: string }) => void };

/** What a key may do, with which devices, and until when. */
export function KeyDialog({ onClose, onMade }: DialogProps) {
  const form = useForm(async (values) => {
    const name = textOf(values, 'name').trim();
    const days = Number(textOf(values, 'days'));
    const made = await makeKey({
      name,
      scopes: values.getAll('scopes') as Scope[],
      labels: labelsIn(textOf(values, 'labels')),
      ...(days > 0 ? { expiresTs: now() + days * dayMs } : {}),
    });
    onMade({ ...made, name });
  }, explain);
  const wrongScopes = form.refusal?.field === 'scopes' ? form.refusal.text : '';
  return (
    <Dialog title={t('keys.make')} onClose={onClose}>
      <Form form={form}>
        <Field
          form={form}
          name="name"
          label={t('keys.name')}
          hint={t('keys.nameHint')}
          input={{ required: true, maxLength: 200, autocomplete: 'off' }}
        />
        <fieldset
          class="scopes"
          aria-invalid={wrongScopes === '' ? undefined : 'true'}
          tabIndex={-1}
        >
          <legend>{t('keys.scopes')}</legend>
          {wrongScopes !== '' && (
            <p class="field-wrong" role="alert">
              {wrongScopes}
            </p>
          )}
          {scopes.map((scope) => (
            <label key={scope} class="check">
              <input
                type="checkbox"
                name="scopes"
                value={scope}
                defaultChecked={scope === 'devices:read' || scope === 'data:read'}
              />
              <span>
                {scopeText(scope)}
                <span class="fine">{scopeHint(scope)}</span>
              </span>
            </label>
          ))}
        </fieldset>
        <label class="field">
          <span>{t('keys.life')}</span>
          <select name="days">
            {lives.map((days) => (
              <option key={days} value={days} selected={days === 365}>
                {t(`keys.days.${days}`)}
              </option>
            ))}
          </select>
        </label>
        <Field
          form={form}
          name="labels"
          label={t('keys.labels')}
          hint={t('keys.labelsHint')}
          input={{ autocomplete: 'off' }}
        />
        <div class="dialog-buttons">
          <button type="button" class="button" onClick={onClose}>
            {t('common.cancel')}
          </button>
          <Submit form={form}>{t('keys.makeThis')}</Submit>
        </div>
      </Form>
    </Dialog>
  );
}

function explain(error: ApiError): Refusal | null {
  if (isWrong(error, 'scopes')) return { field: 'scopes', text: t('keys.noScope') };
  if (isWrong(error, 'labels')) return { field: 'labels', text: t('contacts.badLabels') };
  if (isWrong(error, 'name')) return { field: 'name', text: t('keys.badName') };
  return null;
}
